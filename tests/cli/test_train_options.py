"""The options of a training are explained, and wrong values are refused before anything is read."""

import pytest
from typer.main import get_command

from tigranet.cli.app import app
from tigranet.workflows.larger_network import EXTRA_MINUTES


def test_the_extra_minutes_are_those_of_the_workflow():
    """The command line repeats the number, because the workflow loads PyTorch."""
    (option,) = (each for each in get_command(app).commands["train"].params if each.name == "extra_minutes")
    assert option.default == EXTRA_MINUTES


def test_every_option_has_a_help_text():
    options = get_command(app).commands["train"].params
    assert {"quick", "init", "overwrite", "resume", "size", "color", "group"} <= {option.name for option in options}
    assert [option.name for option in options if not getattr(option, "help", None)] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--seed", -1), "--seed"),
        (("--size", 1), "--size"),
        (("--margin", -2), "--margin"),
        (("--window", "o"), "none"),
    ],
)
def test_a_wrong_value_is_refused(tigranet, tmp_path, options, message):
    code, _, err = tigranet("train", tmp_path / "none", *options)
    assert code == 2
    assert message in err
