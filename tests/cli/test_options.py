import sys

import pytest
from PIL import Image

from tigranet import inference_precision
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


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "oriented-mnist-012", "{image}"),
        ("features", "oriented-mnist-012", "{image}"),
        ("evaluate", "oriented-mnist-012", "mnist-012"),
        ("report", "oriented-mnist-012", "mnist-012", "--no-cnn", "-o", "{folder}/report"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_precision_that_the_hardware_lacks_is_one_line(tigranet, tmp_path, monkeypatch, arguments):
    monkeypatch.setattr(inference_precision, "computes_with", lambda device, dtype: False)
    Image.new("L", (28, 28)).save(tmp_path / "image.png")
    typed = [argument.format(image=tmp_path / "image.png", folder=tmp_path) for argument in arguments]
    code, _, err = tigranet(*typed, "--precision", "bf16", "--device", "cpu")
    assert code == 1
    assert "CPU does not compute in precision bf16" in err
    assert "'auto' or '32'" in err
