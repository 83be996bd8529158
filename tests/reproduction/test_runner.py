import json

from tigranet import Architecture
from tigranet.data import DataSet, LabelledImages
from tigranet.reproduction.paper import REPORTED
from tigranet.reproduction.runner import recipe_for, run
from tigranet.training import Recipe


def test_it_trains_measures_and_repeats(mnist_012):
    small = DataSet(
        "small",
        mnist_012.class_names,
        *(LabelledImages(part.images[:30], part.labels[:30]) for part in (mnist_012.train,) * 3),
    )
    layers = Architecture.parse("SC[2,2]-DP[99]-S[2]-FC[5]")
    (net, first), (_, second) = (run(small, layers, Recipe(epochs=1)) for _ in range(2))
    assert first.parameters == sum(parameter.numel() for parameter in net.parameters())
    assert (first.train, first.moved, first.nearest) == (second.train, second.moved, second.nearest)
    assert first.train == first.validation == first.test
    written = json.loads(json.dumps(first.to_json()))
    assert written["moved"]["mean"] == first.moved.mean
    assert written["how"] == "rotated"
    assert set(written["machine"]) == {"cpu", "threads", "gpu"}
    assert written["recipe"]["epochs"] == 1


def test_the_papers_figures_are_those_of_its_tables():
    assert {name: (row.table, row.test, row.moved) for name, row in REPORTED.items()} == {
        "mnist-012": ("Table 2", "-", "94 ± 0.42"),
        "mnist-rot": ("Table 3", "-", "83.8"),
        "mnist-trans": ("Table 3", "-", "79.6"),
        "eth80": ("Table 4", "95.1", "-"),
    }


def test_the_papers_small_network_reaches_the_papers_figure(mnist_012):
    """Trained upright, tested rotated in ten draws: the paper has 94 +- 0.42."""
    _, measured = run(
        mnist_012, Architecture.parse("paper-small"), recipe_for(mnist_012, Architecture.parse("paper-small"))
    )
    assert measured.moved.draws == 10
    assert measured.moved.mean >= 94
