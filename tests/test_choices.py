"""The names that users choose from are accepted by the code that they are for, and no others are."""

from typing import get_args

import pytest

from tigranet import GridLaplacian, choices, training
from tigranet.graphs import grid
from tigranet.training import Hardware, hardware, recipe


def test_there_is_one_type_for_each():
    assert grid.Boundary is choices.Boundary
    assert training.Log is choices.Log
    assert (recipe.Schedule, recipe.Keep) == (choices.Schedule, choices.Keep)
    assert (hardware.Accelerator, hardware.Precision) == (choices.Accelerator, choices.Precision)


def test_every_name_is_accepted(without_shape_checks):
    for boundary in get_args(choices.Boundary):
        assert GridLaplacian(3, 3, boundary=boundary).boundary == boundary
    for precision in get_args(choices.Precision):
        Hardware(precision=precision).for_trainer()
    for accelerator in get_args(choices.Accelerator):
        Hardware(accelerator)
    for schedule in get_args(choices.Schedule):
        training.Recipe(epochs=1, schedule=schedule)
    for keep in get_args(choices.Keep):
        training.Recipe(epochs=1, keep=keep)


def test_other_names_are_refused(without_shape_checks):
    for build in (
        lambda: GridLaplacian(3, 3, boundary="none"),
        lambda: Hardware(precision="none"),
        lambda: Hardware("none"),
        lambda: training.Recipe(epochs=1, schedule="none"),
        lambda: training.Recipe(epochs=1, keep="none"),
    ):
        with pytest.raises(ValueError, match="'none'"):
            build()
