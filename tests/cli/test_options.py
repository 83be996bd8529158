import sys

from tigranet.cli.options import GlobalOptions, global_options, recipe_option, set_global_options, typed_command
from tigranet.recipe_parameters import RECIPE_PARAMETERS


def test_a_recipe_option_is_described_by_the_shared_table():
    option = recipe_option("zoom")
    assert option.help == RECIPE_PARAMETERS["zoom"].help
    assert option.show_default == RECIPE_PARAMETERS["zoom"].default


def test_global_options_are_remembered():
    before = global_options()
    set_global_options(GlobalOptions("cuda:1"))
    assert global_options().device == "cuda:1"
    set_global_options(before)


def test_the_command_is_quoted_as_it_was_typed(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tigranet", "train", "my photos/", "--device", "cpu"])
    assert typed_command() == "tigranet train 'my photos/' --device cpu"
