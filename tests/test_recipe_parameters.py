import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from tigranet.choices import Keep, Schedule
from tigranet.recipe_parameters import RECIPE_PARAMETERS
from tigranet.training import Recipe


def test_the_parameters_are_the_fields_of_a_recipe_that_users_may_set():
    settable = [field.name for field in fields(Recipe) if field.name not in ("as_is", "turned", "seed")]
    assert list(RECIPE_PARAMETERS) == settable == [parameter.name for parameter in RECIPE_PARAMETERS.values()]


@pytest.mark.parametrize("name", RECIPE_PARAMETERS)
def test_the_type_is_that_of_the_field(name):
    hint = get_type_hints(Recipe)[name]
    assert RECIPE_PARAMETERS[name].type in (hint, *(get_args(hint) if name == "patience" else ()))


def test_names_to_choose_from_are_those_of_a_recipe():
    for schedule in get_args(Schedule):
        for keep in get_args(Keep):
            Recipe(epochs=1, schedule=schedule, keep=keep)


@pytest.mark.parametrize("parameter", RECIPE_PARAMETERS.values(), ids=RECIPE_PARAMETERS)
def test_the_help_is_one_sentence(parameter):
    assert parameter.help[0].isupper()
    assert parameter.help.endswith(".")
    assert ". " not in parameter.help
    assert parameter.default


def test_fixed_defaults_are_described_as_they_are():
    recipe = Recipe.for_images(500)
    assert RECIPE_PARAMETERS["schedule"].default == recipe.schedule
    assert RECIPE_PARAMETERS["keep"].default == recipe.keep
    assert RECIPE_PARAMETERS["jitter"].default.endswith(str(recipe.jitter))
    assert (recipe.balanced, recipe.patience) == (False, None)


def test_defaults_that_depend_on_the_images_are_described_as_they_are():
    few, many = (Recipe.for_images(count, mixed=True) for count in (200, 10_001))
    for name in ("zoom", "stretch", "warp", "tone", "smoothing"):
        described = RECIPE_PARAMETERS[name].default
        assert str(getattr(few, name)) in described
        assert f"{getattr(many, name):g}" in described
        assert getattr(Recipe.for_images(200), name) == 0
    assert (Recipe.for_images(10_000).batch_size, many.batch_size) == (50, 250)
    assert (Recipe.for_images(500).learning_rate, many.learning_rate) == (0.01, 0.003)


def test_defaults_of_networks_with_group_convolutions_are_described_as_they_are():
    few, many = (Recipe.for_images(count, steerable=True) for count in (200, 10_001))
    for recipe in (few, many):
        for name in ("learning_rate", "weight_decay", "zoom", "stretch", "tone", "smoothing", "dropout", "cutout"):
            assert f"{getattr(recipe, name):g}" in RECIPE_PARAMETERS[name].default
            assert "LC layers" in RECIPE_PARAMETERS[name].default
        for name in ("shift", "tint", "blur", "average"):
            assert getattr(recipe, name) == 0
            assert RECIPE_PARAMETERS[name].default.startswith("0")
    assert not few.flip


def test_the_documented_table_has_the_defaults_of_the_recipes():
    page = (Path(__file__).parent.parent / "docs" / "oriented.md").read_text(encoding="utf-8")
    rows = {
        name.replace("-", "_"): cells.split(" | ")
        for name, cells in re.findall(r"^\| `--([\w-]+)`(.*) \|$", page, re.M)
    }
    recipes = [Recipe.for_images(5_000), Recipe.for_images(5_000, mixed=True), Recipe.for_images(5_000, steerable=True)]
    for name in set(rows) - {"jitter", "flip"}:
        documented = [float(cell.split()[0]) for cell in rows[name][-3:]]
        assert documented == [getattr(recipe, name) for recipe in recipes], name
    others = {"epochs", "batch_size", "accumulate", "learning_rate", "schedule", "balanced", "keep", "patience"}
    assert set(rows) == set(RECIPE_PARAMETERS) - others


def test_the_table_loads_neither_pytorch_nor_lightning():
    code = "import sys, tigranet.recipe_parameters; print({'torch', 'lightning'} & set(sys.modules))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "set()\n"
