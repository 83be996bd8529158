from dataclasses import fields, replace
from types import SimpleNamespace

import pytest
from torch import nn

from tigranet.training import Recipe
from tigranet.training.recipe import ADDED_FIELDS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": 0}, "epochs .*1.* got 0"),
        ({"batch_size": 0}, "batch_size .*1.* got 0"),
        ({"learning_rate": 0.0}, "learning_rate .*positive.* got 0.0"),
        ({"learning_rate": float("inf")}, "learning_rate .*finite.* got inf"),
        ({"epochs": 1.5}, "epochs .*integer.* got 1.5"),
        ({"jitter": 2.0}, r"jitter .*pixel.* \[0, 1\], got 2.0"),
        ({"zoom": 1.0}, r"zoom .*image size.* \[0, 1\), got 1.0"),
        ({"stretch": -0.1}, r"stretch .*image size.* \[0, 1\), got -0.1"),
        ({"warp": 2.0}, r"warp .*image size.* \[0, 1\), got 2.0"),
        ({"smoothing": 1.0}, r"smoothing .*label.* \[0, 1\), got 1.0"),
        ({"as_is": 1.0}, r"as_is .*images.* \[0, 1\), got 1.0"),
        ({"tone": -0.5}, r"tone .*\[0, 5\], got -0.5"),
        ({"tone": float("nan")}, r"tone .*\[0, 5\], got nan"),
        ({"tone": 1e3}, r"tone .*\[0, 5\], got 1000.0"),
        ({"weight_decay": -0.1}, r"weight_decay .*at least 0.* got -0.1"),
        ({"weight_decay": 200.0}, r"weight_decay .*below 1 / learning_rate = 100, got 200.0"),
        ({"weight_decay": float("nan")}, r"weight_decay .* got nan"),
        ({"shift": 1.0}, r"shift .*image size.* \[0, 1\), got 1.0"),
        ({"cutout": 1.5}, r"cutout .*image size.* \[0, 1\), got 1.5"),
        ({"tint": -0.2}, r"tint .*brightness in \[0, 1\], got -0.2"),
        ({"blur": 1.1}, r"blur .*smoothed image in \[0, 1\], got 1.1"),
        ({"dropout": 1.0}, r"dropout .*probability in \[0, 1\), got 1.0"),
        ({"average": 1.0}, r"average .*decay per step in \[0, 1\), got 1.0"),
        ({"patience": 0}, "patience .*1.* got 0"),
        ({"schedule": "step"}, "schedule .*'one-cycle' or 'cosine', got 'step'"),
        ({"keep": "first"}, "keep .*'last' or 'best', got 'first'"),
    ],
)
def test_invalid_values_are_errors(arguments, message, without_shape_checks):
    with pytest.raises(ValueError, match=message):
        Recipe(**({"epochs": 1} | arguments))


def test_few_images_have_enough_steps_and_many_images_have_fewer_epochs():
    recipes = {count: Recipe.for_images(count) for count in (3, 50, 200, 500, 1_000, 5_000, 50_000)}
    for count, recipe in recipes.items():
        steps = recipe.epochs * -(-count // recipe.batch_size)
        assert 1_200 <= steps <= 6_000
    assert [recipe.epochs for recipe in recipes.values()] == [1200, 1200, 300, 120, 60, 60, 20]
    assert Recipe.for_images(500, epochs=3, seed=2) == Recipe(epochs=3, seed=2)


def test_a_large_network_has_a_lower_learning_rate():
    assert Recipe.for_images(500, 8_563).learning_rate == 1e-2
    assert Recipe.for_images(500, 441_970).learning_rate == 3e-3


def test_images_are_deformed_for_networks_with_mixed_convolutions_only():
    mixed, other = (Recipe.for_images(500, 8_563, mixed=mixed) for mixed in (True, False))
    assert mixed.deformed
    assert not other.deformed
    assert other.smoothing == other.as_is == 0
    assert not Recipe.for_images(500, 8_563, mixed=True, zoom=0.0, stretch=0.0, warp=0.0).deformed


def test_few_images_are_augmented_in_tone_too():
    few, more = (Recipe.for_images(count, 40_505, mixed=True) for count in (200, 201))
    assert few.tone > more.tone == 0
    assert few.warp > more.warp
    assert Recipe.for_images(50).tone == 0


def test_networks_with_group_convolutions_are_regularised_more_strongly():
    recipes = {count: Recipe.for_images(count, 300_000, steerable=True) for count in (50, 500, 1_000, 5_000, 50_000)}
    for recipe in recipes.values():
        assert (recipe.learning_rate, recipe.weight_decay, recipe.dropout, recipe.smoothing) == (2e-3, 0.05, 0.3, 0.1)
        assert (recipe.zoom, recipe.stretch, recipe.as_is) == (0.2, 0.15, 0.25)
        assert not recipe.flip
    assert [recipe.epochs for recipe in recipes.values()] == [400, 60, 60, 60, 40]
    assert [recipe.batch_size for recipe in recipes.values()] == [50, 50, 50, 50, 250]
    assert [recipe.cutout for recipe in recipes.values()] == [0, 0, 0, 0.25, 0.25]
    assert [recipe.warp for recipe in recipes.values()] == [0.035, 0.035, 0.035, 0, 0]
    assert [recipe.tone for recipe in recipes.values()] == [0.5, 0, 0, 0, 0]
    assert Recipe.for_images(500, steerable=True, dropout=0.0, epochs=7).dropout == 0


def test_networks_with_coarsenings_are_trained_longer():
    keeping, coarsening = (
        [Recipe.for_images(count, mixed=True, coarsens=coarsens) for count in (50, 333, 1_000, 5_000, 50_000)]
        for coarsens in (False, True)
    )
    assert [recipe.epochs for recipe in keeping] == [400, 61, 20, 20, 24]
    assert [recipe.epochs for recipe in coarsening] == [400, 61, 60, 60, 40]
    assert all(replace(a, epochs=b.epochs) == b for a, b in zip(keeping, coarsening, strict=True))


@pytest.mark.parametrize("steerable", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_the_recipe_of_a_network_depends_on_its_architecture(mixed, steerable):
    network = nn.Linear(30, 40)
    assert Recipe.for_network(network, 500) == Recipe.for_images(500, 1_240)
    network.architecture = SimpleNamespace(has_mixed_convolutions=mixed)
    assert Recipe.for_network(network, 500) == Recipe.for_images(500, 1_240, mixed)
    network.architecture.has_group_convolutions = steerable
    assert Recipe.for_network(network, 500, seed=3) == Recipe.for_images(500, 1_240, mixed, steerable, seed=3)
    network.architecture.num_coarsenings = 2
    assert Recipe.for_network(network, 500) == Recipe.for_images(500, 1_240, mixed, steerable, coarsens=True)


def test_added_fields_are_fields_that_change_nothing_by_default():
    defaults = {field.name: field.default for field in fields(Recipe)}
    assert all(defaults[name] == (name == "accumulate") for name in ADDED_FIELDS)


def test_there_are_20_to_40_validations():
    assert [Recipe(epochs=epochs).check_every for epochs in (1, 20, 39, 40, 1200)] == [1, 1, 1, 2, 60]


def test_it_prints_its_numbers_and_what_differs_from_the_defaults():
    assert "zoom 0.1" in str(Recipe(epochs=3, zoom=0.1))
    assert str(Recipe(epochs=3)) == "epochs 3, batch size 50, learning rate 0.01, jitter 0.5, seed 0"
    recipe = Recipe(epochs=3, balanced=True, schedule="cosine", patience=4)
    assert str(recipe) == (
        "epochs 3, batch size 50, learning rate 0.01, schedule cosine, jitter 0.5, balanced, patience 4, seed 0"
    )
