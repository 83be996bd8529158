import json

from tigranet.data import DataSet, Labelled
from tigranet.experiments.paper import TABLE_2
from tigranet.experiments.runner import run
from tigranet.training import Recipe


def test_it_trains_measures_and_repeats(mnist_012):
    small = DataSet(
        "small",
        mnist_012.class_names,
        *(Labelled(part.images[:30], part.labels[:30]) for part in (mnist_012.train,) * 3),
    )
    (net, first), (_, second) = (run(small, "SC[2,2]-DP[99]-S[2]-FC[5]", Recipe(epochs=1)) for _ in range(2))
    assert first.parameters == sum(parameter.numel() for parameter in net.parameters())
    assert (first.train, first.test, first.rotated) == (second.train, second.test, second.rotated)
    assert first.train == first.validation == first.test
    written = json.loads(json.dumps(first.to_json()))
    assert written["rotated"]["mean"] == first.rotated.mean
    assert written["recipe"]["epochs"] == 1


def test_the_papers_row():
    assert TABLE_2["TIGraNet"] == (98, 97, 94, 0.42)
