from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tigranet.data import data_folder, load
from tigranet.data.sources.registry import ETH80_COLOR, REGISTRY, check_sources


def test_mnist_012_is_500_100_100_of_three_digits(mnist_012):
    parts = (mnist_012.train, mnist_012.validation, mnist_012.test)
    assert [len(part.labels) for part in parts] == [500, 100, 100]
    assert all(part.images.shape[1:] == (1, 28, 28) for part in parts)
    assert all(set(part.labels.tolist()) == {0, 1, 2} for part in parts)
    assert mnist_012.class_names == ("0", "1", "2")


def test_no_image_is_in_two_parts(mnist_012):
    images = torch.cat([mnist_012.train.images, mnist_012.validation.images, mnist_012.test.images])
    assert len(torch.unique(images.flatten(1), dim=0)) == 700


def test_it_is_a_pure_function_of_the_seed(mnist_012):
    again, other = load("mnist-012", seed=0), load("mnist-012", seed=1)
    assert torch.equal(again.train.images, mnist_012.train.images)
    assert not torch.equal(other.train.images, mnist_012.train.images)


@pytest.mark.parametrize(
    ("name", "message"), [("mnist012", "did you mean 'mnist-012'"), ("cats", "there are: mnist-012, mnist-rot")]
)
def test_an_unknown_name_is_answered_with_the_known_ones(name, message):
    with pytest.raises(ValueError, match=message):
        load(name)


@pytest.mark.parametrize(
    ("name", "size", "digits"),
    [
        ("mnist-rot-mini", 26, "012345678"),
        ("mnist-trans-mini", 34, "012345678"),
        ("mnist-rot10-mini", 28, "0123456789"),
        ("mnist-rot-trans-mini", 40, "012345678"),
    ],
)
def test_the_mini_sets_are_the_large_ones_from_fewer_digits(name, size, digits):
    data = load(name)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [3500, 300, 700]
    assert data.train.images.shape[1:] == (1, size, size)
    assert data.class_names == tuple(digits)
    assert set(data.test.labels.tolist()) == set(range(len(digits)))
    large = REGISTRY[name.removesuffix("-mini")]
    assert (data.class_names, data.test_motion) == (large.class_names, large.test_motion)
    assert torch.equal(large.frame(torch.ones(1, 1, 28, 28)), REGISTRY[name].frame(torch.ones(1, 1, 28, 28)))


def test_padding_keeps_every_pixel():
    data = load("mnist-trans-mini")
    assert (data.train.images[:, :, :3] == 0).all()
    assert (data.train.images[:, :, :, -3:] == 0).all()


def test_a_larger_set_is_never_replaced_by_a_smaller_one(tmp_path):
    for name in ("mnist-rot", "mnist-trans", "mnist-rot10", "mnist-rot-trans"):
        with pytest.raises(FileNotFoundError, match="there is no MNIST in"):
            load(name, folder=tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no ETH-80 in"):
        load("eth80", folder=tmp_path)


def test_the_data_folder_is_the_one_given_then_the_variable_then_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRANET_DATA", "/from/variable")
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == Path("/from/variable")
    monkeypatch.delenv("TIGRANET_DATA")
    assert data_folder().name == "tigranet"


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """A folder with an ETH-80 whose views show what they are of: the class in red, the object in green, the view in
    blue."""
    folder = tmp_path_factory.mktemp("marked")
    label, number, view = (index.flatten().astype(np.uint8) for index in np.indices((8, 10, 41)))
    images = np.broadcast_to(np.stack([label, number, view], -1)[:, None, None], (3280, 50, 50, 3))
    np.savez_compressed(folder / "eth80.npz", images=images, label=label, object_id=number)
    return folder


def seen(part):
    """Of the marked views: the class, the object and the view of each."""
    return [tuple(marks) for marks in (255 * part.images[:, :, 0, 0]).round().int().tolist()]


def test_eth80_by_image_has_views_of_every_tested_object_in_training(marked):
    data = load("eth80-color", folder=marked)
    parts = [seen(part) for part in (data.train, data.validation, data.test)]
    assert [len(set(part)) for part in parts] == [2_300, 300, 680]
    assert len(set().union(*parts)) == 3_280
    assert {marks[:2] for marks in parts[2]} <= {marks[:2] for marks in parts[0]}
    assert [marks[0] for marks in parts[0]] == data.train.labels.tolist()


def test_in_grey_it_is_the_same_views_by_their_luminance(marked):
    grey, coloured = (load(name, 3, marked).test for name in ("eth80", "eth80-color"))
    red, green, blue = coloured.images.unbind(1)
    torch.testing.assert_close(grey.images[:, 0], 0.299 * red + 0.587 * green + 0.114 * blue)
    assert torch.equal(grey.labels, coloured.labels)


def test_whole_objects_are_held_out(marked):
    in_colour = replace(REGISTRY["eth80-objects"], source=ETH80_COLOR)
    for seed in (0, 1):
        data = in_colour.load("eth80-objects", seed, marked)
        objects = [{marks[:2] for marks in seen(part)} for part in (data.train, data.validation, data.test)]
        assert [len(part) for part in objects] == [56, 8, 16]
        assert len(set().union(*objects)) == 80  # no object is in two parts
        assert torch.bincount(data.test.labels).tolist() == [2 * 41] * 8  # with all its views
    assert len(data.train.labels) == 7 * 8 * 41
    other = in_colour.load("eth80-objects", 0, marked)
    assert seen(other.test) != seen(data.test)


def test_a_source_is_checked_whole(marked):
    verdicts = check_sources(marked)
    assert verdicts["ETH-80"] == "good: 3,280 images of 8 classes"
    assert verdicts["MNIST"] == "not there"


REAL = {  # training, validation and test images, their size, the classes of the test images
    "mnist-rot": (50_000, 3_000, 8_991, 26, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974]),
    "mnist-trans": (50_000, 3_000, 8_991, 34, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974]),
    "mnist-rot10": (50_000, 3_000, 10_000, 28, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    "mnist-rot-trans": (50_000, 3_000, 8_991, 40, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974]),
    "eth80": (2_300, 300, 680, 50, None),
    "eth80-objects": (2_296, 328, 656, 50, [82] * 8),
    "eth80-color": (2_300, 300, 680, 50, None),
}


@pytest.mark.parametrize("name", REAL)
def test_the_sizes_and_classes_of_the_real_sets(name, real_data):
    data = load(name, folder=real_data)
    train, validation, test, size, classes = REAL[name]
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [train, validation, test]
    assert data.train.images.shape[1:] == (3 if "color" in name else 1, size, size)
    assert classes is None or torch.bincount(data.test.labels).tolist() == classes
    assert (data.train.images.min(), data.train.images.max()) == (0, 1)


STEPS = [[-3, -4, -5], [-3, 6, -2]]


def test_the_first_angles_and_steps_of_the_test_sets():
    """They are draws of a generator with the seed, the same on every machine."""
    angles = 360 * torch.rand(3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(angles, torch.tensor([178.65237, 276.55984, 31.85188]), rtol=0, atol=1e-3)
    steps = torch.randint(-6, 7, (2, 3), generator=torch.Generator().manual_seed(0))
    assert steps.tolist() == STEPS
    images = torch.zeros(3, 1, 25, 25)
    images[:, :, 12, 12] = 1
    moved = load("mnist-trans-mini").test_motion(images, torch.Generator().manual_seed(0))
    assert [divmod(int(image.argmax()), 25) for image in moved] == [
        (12 + d, 12 + r) for d, r in zip(*STEPS, strict=True)
    ]
