import numpy as np
import pytest

from tigranet.recipe_parameters import RECIPE_PARAMETERS
from tigranet.training.recipe_arguments import NOT_OPTIONAL, recipe_fields


def test_none_stands_for_the_default_of_the_recipe():
    assert recipe_fields(dict.fromkeys(set(RECIPE_PARAMETERS) - set(NOT_OPTIONAL))) == {}


def test_numbers_of_numpy_become_numbers_of_python():
    fields = recipe_fields(
        {"epochs": np.int64(3), "learning_rate": np.float32(0.5), "jitter": np.int64(0), "balanced": np.bool_(True)}
    )
    assert fields == {"epochs": 3, "learning_rate": 0.5, "jitter": 0, "balanced": True}
    assert [type(value) for value in fields.values()] == [int, float, int, bool]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epochs", "3", "epochs .*integer or None, got '3'"),
        ("batch_size", 2.0, "batch_size .*integer or None, got 2.0"),
        ("learning_rate", "x", "learning_rate .*number or None, got 'x'"),
        ("jitter", "a", "jitter .*number, got 'a'"),
        ("jitter", None, "jitter .*number, got None"),
        ("balanced", "yes", "balanced .*True or False, got 'yes'"),
        ("balanced", None, "balanced .*True or False, got None"),
        ("flip", None, "flip .*True or False, got None"),
        ("dropout", "0.3", "dropout .*number or None, got '0.3'"),
        ("schedule", 3, "schedule .*'one-cycle' or 'cosine', got 3"),
        ("keep", None, "keep .*'last' or 'best', got None"),
        ("patience", 1.5, "patience .*integer or None, got 1.5"),
    ],
)
def test_values_of_a_wrong_type_are_errors(name, value, message):
    with pytest.raises(TypeError, match=message):
        recipe_fields({name: value})
