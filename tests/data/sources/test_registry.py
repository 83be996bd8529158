import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tigranet.cache_folder import user_cache_folder
from tigranet.data import Isometry, LabelledImages, data_folder, load
from tigranet.data.sources.eth80 import ETH80_COLOR
from tigranet.data.sources.registry import REGISTRY, check_sources
from tigranet.data.sources.source import ImagePool, Source


def test_mnist_012_has_500_100_and_100_images_of_three_digits(mnist_012):
    parts = (mnist_012.train, mnist_012.validation, mnist_012.test)
    assert [len(part.labels) for part in parts] == [500, 100, 100]
    assert all(part.images.shape[1:] == (1, 28, 28) for part in parts)
    assert all(set(part.labels.tolist()) == {0, 1, 2} for part in parts)
    assert mnist_012.class_names == ("0", "1", "2")


def test_no_image_is_in_two_parts(mnist_012):
    images = torch.cat([mnist_012.train.images, mnist_012.validation.images, mnist_012.test.images])
    assert len(torch.unique(images.flatten(1), dim=0)) == 700


def test_a_data_set_is_a_pure_function_of_the_seed(mnist_012):
    repeated, other = load("mnist-012", seed=0), load("mnist-012", seed=1)
    assert torch.equal(repeated.train.images, mnist_012.train.images)
    assert not torch.equal(other.train.images, mnist_012.train.images)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("mnist012", "'mnist-012'"), ("cats", "mnist-012, mnist-rot, .*, neu-steel, cifar10, plankton")],
)
def test_the_error_for_an_unknown_name_suggests_a_similar_one_or_lists_all(name, suggestion):
    with pytest.raises(ValueError, match=f"'{name}'.*{suggestion}"):
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
def test_the_mini_sets_differ_from_the_large_ones_only_in_their_images(name, size, digits):
    data = load(name)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [3500, 300, 700]
    assert data.train.images.shape[1:] == (1, size, size)
    assert data.class_names == tuple(digits)
    assert set(data.test.labels.tolist()) == set(range(len(digits)))
    large = REGISTRY[name.removesuffix("-mini")]
    assert (data.class_names, data.test_motion) == (large.class_names, large.test_motion)
    assert torch.equal(large.frame(torch.ones(1, 1, 28, 28)), REGISTRY[name].frame(torch.ones(1, 1, 28, 28)))


@pytest.mark.parametrize(("name", "border"), [("mnist-trans-mini", 3), ("mnist-rot-trans-mini", 6)])
def test_padding_adds_zeros_on_every_side_and_keeps_every_pixel(name, border):
    digits = torch.rand(2, 1, 28, 28)
    padded = REGISTRY[name].frame(digits)
    inner = slice(border, -border)
    assert torch.equal(padded[..., inner, inner], digits)
    padded[..., inner, inner] = 0
    assert (padded == 0).all()
    images = load(name).train.images
    assert (images[:, :, :border] == 0).all()
    assert (images[:, :, :, -border:] == 0).all()


def test_a_missing_source_is_an_error_and_not_replaced_by_another(tmp_path):
    for name in ("mnist-rot", "mnist-trans", "mnist-rot10", "mnist-rot-trans"):
        with pytest.raises(FileNotFoundError, match="no MNIST in"):
            load(name, folder=tmp_path)
    for name, source in {
        "eth80": "ETH-80",
        "cifar10": "CIFAR-10",
        "plankton": "plankton",
        "rotmnist-12k": "MNIST",
    }.items():
        with pytest.raises(FileNotFoundError, match=f"no {source} in"):
            load(name, folder=tmp_path)


def test_the_data_folder_is_the_argument_or_the_variable_or_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRANET_DATA", "/from/variable")
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == Path("/from/variable")
    monkeypatch.delenv("TIGRANET_DATA")
    assert data_folder() == user_cache_folder()
    assert data_folder().name == "tigranet"


@pytest.fixture(scope="module")
def coded_eth80(tmp_path_factory):
    """A folder with an ETH-80 whose pixels tell the class in red, the object in green and the view in blue."""
    folder = tmp_path_factory.mktemp("coded")
    label, number, view = (index.flatten().astype(np.uint8) for index in np.indices((8, 10, 41)))
    images = np.broadcast_to(np.stack([label, number, view], -1)[:, None, None], (3280, 50, 50, 3))
    np.savez_compressed(folder / "eth80.npz", images=images, label=label, object_id=number)
    return folder


def codes(part):
    """Return class, object and view of each image."""
    return [tuple(pixel) for pixel in (255 * part.images[:, :, 0, 0]).round().int().tolist()]


def test_eth80_by_image_has_other_views_of_every_test_object_in_training(coded_eth80):
    data = load("eth80-color", folder=coded_eth80)
    parts = [codes(part) for part in (data.train, data.validation, data.test)]
    assert [len(set(part)) for part in parts] == [2_300, 300, 680]
    assert len(set().union(*parts)) == 3_280
    assert {code[:2] for code in parts[2]} <= {code[:2] for code in parts[0]}
    assert [code[0] for code in parts[0]] == data.train.labels.tolist()


def test_eth80_in_grey_has_the_luminance_of_the_same_views(coded_eth80):
    grey, color = (load(name, 3, coded_eth80).test for name in ("eth80", "eth80-color"))
    red, green, blue = color.images.unbind(1)
    torch.testing.assert_close(grey.images[:, 0], 0.299 * red + 0.587 * green + 0.114 * blue)
    assert torch.equal(grey.labels, color.labels)


def test_eth80_objects_holds_out_whole_objects(coded_eth80):
    in_color = replace(REGISTRY["eth80-objects"], source=ETH80_COLOR)
    for seed in (0, 1):
        data = in_color.load("eth80-objects", seed, coded_eth80)
        objects = [{code[:2] for code in codes(part)} for part in (data.train, data.validation, data.test)]
        assert [len(part) for part in objects] == [56, 8, 16]
        assert len(set().union(*objects)) == 80  # no object is in two parts
        assert torch.bincount(data.test.labels).tolist() == [2 * 41] * 8  # with all its views
    assert len(data.train.labels) == 7 * 8 * 41
    other = in_color.load("eth80-objects", 0, coded_eth80)
    assert codes(other.test) != codes(data.test)


def test_sources_are_checked_by_loading_them(coded_eth80):
    verdicts = check_sources(coded_eth80)
    assert verdicts["ETH-80"] == "good: 3,280 images of 8 classes"
    for name in ("MNIST", "rotated MNIST", "CIFAR-10", "plankton"):
        assert verdicts[name] == "not there"


def test_a_damaged_source_is_bad_with_the_reason(tmp_path):
    (tmp_path / "eth80.npz").write_bytes(b"PK")
    assert check_sources(tmp_path)["ETH-80"].startswith(f"bad: '{tmp_path / 'eth80.npz'}'")


def numbered_pool(count, num_classes, test=0):
    """Images of one pixel, which is their position. Class sizes grow from the first class to the last."""

    def numbered(size):
        labels = (num_classes * (torch.arange(size) / size).sqrt()).long()
        return LabelledImages(torch.arange(size).float().reshape(-1, 1, 1, 1), labels)

    return ImagePool(numbered(count), numbered(test) if test else None)


PROTOCOLS = {  # images to draw from, test images of their own, numbers drawn, hash of the positions drawn by seed 0
    "cifar10": (50_000, 10_000, [45_000, 5_000, 10_000], "9e94fe3862c9c302"),
    "plankton": (30_336, 0, [22_836, 1_500, 6_000], "c8343460edd28dbb"),
    "rotmnist-12k": (70_000, 0, [10_000, 2_000, 50_000], "482b7379ca2e77a8"),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_images_that_a_seed_draws_never_change(name):
    count, test, sizes, expected = PROTOCOLS[name]
    entry = REGISTRY[name]
    pool = numbered_pool(count, len(entry.class_names), test)
    source = Source("numbers", lambda _: True, lambda _: pool)
    draws = []
    for seed in (0, 0, 1):
        data = replace(entry, source=source, training_motion=Isometry()).load(name, seed, Path("nowhere"))
        draws.append([part.images.flatten().long() for part in (data.train, data.validation, data.test)])
    assert [len(part) for part in draws[0]] == sizes
    drawn = torch.cat(draws[0] if not test else draws[0][:2])
    assert len(drawn.unique()) == len(drawn)  # no image is in two parts
    if test:
        assert draws[0][2].tolist() == list(range(test))
    assert all(map(torch.equal, draws[0], draws[1]))
    assert not torch.equal(draws[0][0], draws[2][0])
    assert hashlib.sha256(torch.cat(draws[0]).numpy().astype("<i8").tobytes()).hexdigest()[:16] == expected


def test_what_enters_rotated_test_images_fits_their_background():
    assert REGISTRY["cifar10"].test_motion == Isometry(rotated=True, padding="reflection")
    motion = REGISTRY["plankton"].test_motion
    assert motion == Isometry(rotated=True, padding="background")
    white = torch.ones(8, 1, 16, 16)
    white[..., 6:10, 6:10] = 0
    moved = motion(white, torch.Generator().manual_seed(0))
    assert (moved[..., [0, 0, -1, -1], [0, -1, 0, -1]] == 1).all()


REAL = {  # numbers of training, validation and test images, their side length, test images per class
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


SHIFTS = [[-3, -4, -5], [-3, 6, -2]]


def test_the_first_angles_and_shifts_are_the_same_on_every_machine():
    angles = 360 * torch.rand(3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(angles, torch.tensor([178.65237, 276.55984, 31.85188]), rtol=0, atol=1e-3)
    shifts = torch.randint(-6, 7, (2, 3), generator=torch.Generator().manual_seed(0))
    assert shifts.tolist() == SHIFTS
    images = torch.zeros(3, 1, 25, 25)
    images[:, :, 12, 12] = 1
    moved = load("mnist-trans-mini").test_motion(images, torch.Generator().manual_seed(0))
    assert [divmod(int(image.argmax()), 25) for image in moved] == [
        (12 + down, 12 + right) for down, right in zip(*SHIFTS, strict=True)
    ]
