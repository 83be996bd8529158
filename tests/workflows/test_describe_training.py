import pytest

from images import fill
from tigranet.data import load_user_data
from tigranet.pretrained import shipped
from tigranet.workflows.describe_training import LEARNED_FEATURES, describe_choice, describe_data, describe_network


def test_the_original_sizes_and_the_scaling_are_described(tmp_path):
    fill(tmp_path / "photos", {"a": 10, "b": 10}, size=(30, 40))
    data, _ = load_user_data(tmp_path / "photos", size=20)
    first, second = describe_data(tmp_path / "photos", data)
    parts = ", ".join(
        f"{len(part.labels)} {name}"
        for name, part in (("training images", data.train), ("validation", data.validation))
    )
    assert first == f"photos: {parts} and {len(data.test.labels)} test images of 2 classes"
    assert "images: 20x20 pixels, grey, scaled so that the longer side of 40 pixels becomes 20" in second
    assert "--size" in second
    for file in (tmp_path / "photos").rglob("*.png"):  # the pixels are in the cache
        file.unlink()
    assert describe_data(tmp_path / "photos", data)[1].startswith("images: 20x20 pixels, grey; --size")


def test_named_data_are_called_upright_where_that_is_known(small):
    first, second = describe_data("mnist-012", small)
    assert first == ("small: 30 upright training images, never rotated, 30 validation and 30 test images of 3 classes")
    assert second == "images: 28x28 pixels, grey"


def test_the_network_has_its_number_of_parameters():
    assert describe_network("paper", 441970, "as requested") == "network: paper, 441,970 parameters, as requested"


def test_a_first_answer_names_features_that_come_with_the_package():
    assert LEARNED_FEATURES in shipped()
    text = describe_choice(300, "default", gpu=False, start=None, quick=True)
    assert f"--init {LEARNED_FEATURES}" in text
    assert LEARNED_FEATURES not in describe_choice(300, "default", gpu=False, start=None)


@pytest.mark.parametrize("start", [None, "model/"])
def test_a_cpu_names_a_faster_network_and_a_more_accurate_one(start):
    options = {
        "images": 300,
        "choice": "default",
        "gpu": False,
        "start": start,
        "faster": "pyramid-tiny",
        "is_fast": True,
    }
    text = describe_choice(**options)
    assert "the default for 300 training images of this size on a CPU" in text
    assert "--architecture pyramid-tiny is faster" in text
    assert "--architecture accurate is more accurate" in text
    assert (f"starts from '{start}'" in text) == (start is not None)
    text = describe_choice(**options, may_train_larger=True)
    assert "a larger network follows" in text
    assert "--extra-minutes" in text
    assert "--architecture accurate" not in text
    assert "faster" not in describe_choice(**(options | {"faster": ""}))
    assert "--architecture accurate" not in describe_choice(**(options | {"is_fast": False}))
    assert "--architecture names another one" in describe_choice(**(options | {"is_fast": False, "faster": ""}))
    for other in (
        {"gpu": True, "is_fast": False},
        {"choice": None},
        {"quick": True},
        {"choice": "fast"},
        {"choice": "accurate"},
    ):
        text = describe_choice(**(options | other))
        assert "pyramid-tiny" not in text
        assert "--architecture accurate" not in text


@pytest.mark.parametrize("choice", ["fast", "accurate"])
def test_a_named_default_says_what_it_is_for(choice):
    text = describe_choice(300, choice, gpu=False, start="model/")
    assert text == f"the {choice} network for 300 training images of this size; starts from 'model/'"
