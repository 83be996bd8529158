import pytest

from tigranet.serving.model_names import name_models


def test_the_last_part_of_a_path_is_the_name():
    assert name_models(["a/b", "c/", "x=a/b", "org/d"]) == {"b": "a/b", "c": "c/", "x": "a/b", "d": "org/d"}


@pytest.mark.parametrize(
    ("models", "reason"),
    [
        ([], "at least one"),
        (["a/m", "b/m"], "two models.*'m'"),
        (["."], r"'\.'.*NAME="),
        (["my model/"], "'my model'"),
        (["a/b=c"], "'a/b'"),
        (["=c"], "''"),
        (["x" * 101], "xxx"),
    ],
)
def test_names_that_cannot_be_used_are_refused_with_the_remedy(models, reason):
    with pytest.raises(ValueError, match=reason):
        name_models(models)
