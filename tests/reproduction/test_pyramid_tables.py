from dataclasses import fields

import pytest

from tigranet.architecture import Architecture
from tigranet.reproduction.pyramid_tables import PYRAMID_TABLES
from tigranet.training import Recipe

RECIPE_FIELDS = {field.name for field in fields(Recipe)}
WITH_ONE_RECIPE = ("photographs", "rotmnist", "plankton")


def defaults_that_depend_on_the_network(images):
    """Fields of the default recipe that differ between kinds of networks of different sizes."""
    recipes = [Recipe.for_images(images, parameters, mixed) for parameters in (0, 10**7) for mixed in (False, True)]
    return {field.name for field in fields(Recipe) if len({str(getattr(recipe, field.name)) for recipe in recipes}) > 1}


@pytest.mark.parametrize("name", PYRAMID_TABLES)
def test_recipes_have_known_fields_and_every_table_has_three_seeds(name):
    assert PYRAMID_TABLES[name].seeds == 3
    for row in PYRAMID_TABLES[name].rows:
        assert set(row.recipe) <= RECIPE_FIELDS


@pytest.mark.parametrize("name", WITH_ONE_RECIPE)
def test_all_rows_with_the_same_images_have_the_same_budget_and_augmentation(name):
    rows = PYRAMID_TABLES[name].rows
    for images in {row.images for row in rows}:
        recipes = [row.recipe | {"turned": None} for row in rows if row.images == images]
        assert all(recipe == recipes[0] for recipe in recipes)
        assert defaults_that_depend_on_the_network(images or 20_000) <= set(recipes[0])
        assert {"epochs", "batch_size", "learning_rate"} <= set(recipes[0])
    assert len({row.precision for row in rows}) == 1


def test_only_the_rows_that_say_so_are_trained_on_rotated_images():
    for name in ("photographs", "plankton"):
        for row in PYRAMID_TABLES[name].rows:
            assert row.recipe["turned"] == ("turned" in row.note)


def test_photographs_have_every_method_with_and_without_the_disc():
    rows = PYRAMID_TABLES["photographs"].rows
    plain = {row.kind for row in rows if not row.windowed}
    discs = {row.kind.replace(", disc", "") for row in rows if row.windowed}
    assert plain - discs == {"TIGraNet (products)"}
    assert {"ResNet (18 layers)", "ResNet (18 layers, trained on turned images)", "GroupCNN (C8)"} <= discs <= plain
    for row in rows:
        if row.method == "TIGraNet":
            assert (row.options == {"window": "disc"}) != row.windowed


def test_the_learning_curve_has_the_same_methods_for_every_number_of_images():
    table = PYRAMID_TABLES["plankton"]
    assert table.has_curve
    kinds = [[row.kind for row in table.rows if row.images == images] for images in (100, 1_000, 10_000, None)]
    assert all(each == kinds[0] for each in kinds)
    assert "ResNet (18 layers, trained on turned images)" in kinds[0]
    epochs = {row.images: row.recipe["epochs"] for row in table.rows}
    assert epochs[100] > epochs[1_000] >= epochs[10_000]
    assert not any(row.balanced_draw for row in table.rows)


def test_the_ablation_changes_one_thing_per_row():
    default, *variants = PYRAMID_TABLES["pyramid-ablation"].rows
    groups = {
        "zoom": "deformation",
        "stretch": "deformation",
        "as_is": "deformation",
        "tone": "colour",
        "tint": "colour",
    }
    for row in variants:
        recipe = {groups.get(name, name) for name in row.recipe if row.recipe[name] != default.recipe[name]}
        changes = [row.layers != default.layers, row.options != default.options, *recipe]
        count = len(list(filter(None, changes)))
        assert count == (4 if row.note.count(", ") == 3 else 1), row
    assert len({(row.layers, str(row.options), str(row.recipe)) for row in variants}) == len(variants)


def test_architectures_can_be_parsed():
    for table in PYRAMID_TABLES.values():
        for architecture in {row.architecture for row in table.rows if row.method == "TIGraNet"}:
            Architecture.parse(architecture)


def test_no_row_is_measured_on_images_that_it_is_trained_on():
    for name, table in PYRAMID_TABLES.items():
        assert not any(row.on_validation and row.includes_validation for row in table.rows)
        assert table.on_validation == (name == "pyramid-ablation")
