from dataclasses import replace

import numpy as np
import pytest
import torch

from tigranet.data import load, rotate
from tigranet.data.sources import rotated_mnist
from tigranet.data.sources.registry import REGISTRY, check_sources
from tigranet.data.sources.rotated_mnist import (
    FILE_NAMES,
    ROTATED_MNIST,
    ROTATED_MNIST_OR_MNIST,
    find_rotated_mnist,
    load_rotated_mnist,
)

SMALL = replace(REGISTRY["rotmnist-12k"], sizes=(10, 2, 50))


@pytest.fixture
def original(tmp_path, monkeypatch):
    """A folder with two small files in the original format, their images and their labels."""
    monkeypatch.setattr(rotated_mnist, "IMAGES_PER_FILE", (12, 50))
    rng = np.random.default_rng(0)
    images, labels = rng.random((62, 28, 28)).round(3), rng.integers(0, 10, 62)
    columns = images.transpose(0, 2, 1).reshape(62, 784)  # column by column
    table = np.concatenate([columns, labels[:, None]], 1)
    for name, rows in zip(FILE_NAMES, (table[:12], table[12:]), strict=True):
        np.savetxt(tmp_path / name, rows, "%.6g")
    return tmp_path, torch.from_numpy(images).float()[:, None], labels.tolist()


@pytest.fixture
def small_folder(small_mnist, tmp_path, without_shape_checks):
    """A folder with 80 digits that are accepted as MNIST."""
    np.savez(tmp_path / "mnist.npz", **dict(zip(("x_train", "y_train", "x_test", "y_test"), small_mnist, strict=True)))
    return tmp_path


def test_the_original_files_are_used_exactly_for_every_seed(original):
    folder, images, labels = original
    assert ROTATED_MNIST_OR_MNIST.there(folder)
    for seed in (0, 1):
        data = SMALL.load("rotmnist-12k", seed, folder)
        parts = (data.train, data.validation, data.test)
        assert [len(part.labels) for part in parts] == [10, 2, 50]
        torch.testing.assert_close(torch.cat([part.images for part in parts]), images)
        assert torch.cat([part.labels for part in parts]).tolist() == labels
        assert data.training_motion.rotated
    assert check_sources(folder)["rotated MNIST"] == "good: 62 images of 10 classes"


def test_the_original_files_are_also_found_in_the_folder_of_their_archive(original):
    folder, images, _ = original
    (folder / "mnist_rotation_new").mkdir()
    for name in FILE_NAMES:
        (folder / name).rename(folder / "mnist_rotation_new" / name)
    torch.testing.assert_close(load_rotated_mnist(folder).images, images)


def test_one_of_the_two_files_is_not_enough(original):
    folder, _, _ = original
    (folder / FILE_NAMES[1]).unlink()
    assert find_rotated_mnist(folder) == []
    assert not ROTATED_MNIST.there(folder)
    with pytest.raises(FileNotFoundError, match=rf"no rotated MNIST in '{folder}'.*{FILE_NAMES[1]}.*TIGRANET_DATA"):
        load_rotated_mnist(folder)
    with pytest.raises(FileNotFoundError, match="no MNIST in"):
        load("rotmnist-12k", folder=folder)


@pytest.mark.parametrize(
    ("change", "received"),
    [
        (lambda lines: lines[:-1], "12 lines of 785 numbers, got 11 of 785"),
        (lambda lines: [*lines, lines[0]], "12 lines of 785 numbers, got more than 12"),
        (lambda lines: [line.rsplit(" ", 1)[0] for line in lines], "785 numbers, got 12 of 784"),
        (lambda lines: [*lines[:-1], lines[-1][:30]], "cannot be read"),
        (lambda lines: [*lines[:-1], "x" + lines[-1]], "cannot be read"),
        (lambda lines: [*lines[:-1], "1" + lines[-1]], "pixels from 0 to 1"),
        (lambda lines: [*lines[:-1], "nan" + lines[-1][lines[-1].index(" ") :]], "pixels from 0 to 1"),
        (lambda lines: [*lines[:-1], lines[-1] + "5"], "labels from 0 to 9"),
        (lambda lines: [*lines[:-1], lines[-1] + ".5"], "labels from 0 to 9"),
        (lambda lines: [], "empty"),
    ],
)
def test_a_damaged_file_is_named(original, change, received):
    folder, _, _ = original
    path = folder / FILE_NAMES[0]
    path.write_text("\n".join(change(path.read_text().splitlines())))
    with pytest.raises(ValueError, match=rf"{received}") as error:
        load_rotated_mnist(folder)
    assert f"'{path}'" in str(error.value)


def test_training_and_test_digits_of_mnist_are_drawn_together_and_each_is_rotated(small_folder, small_mnist):
    digits = torch.from_numpy(np.concatenate([small_mnist.train_images, small_mnist.test_images]))[:, None] / 255
    labels = [*small_mnist.train_labels.tolist(), *small_mnist.test_labels.tolist()]
    upright = replace(SMALL, training_motion=SMALL.test_motion).load("rotmnist-12k", 0, small_folder)
    rotated = SMALL.load("rotmnist-12k", 0, small_folder)
    drawn = torch.cat([part.images for part in (upright.train, upright.validation, upright.test)])
    positions = [int((digits == image).flatten(1).all(1).nonzero()) for image in drawn]
    assert len(set(positions)) == 62
    assert max(positions[:12]) >= 60  # some training digits are test digits of MNIST
    assert min(positions[12:]) < 60
    parts = (rotated.train, rotated.validation, rotated.test)
    assert torch.cat([part.labels for part in parts]).tolist() == [labels[position] for position in positions]
    # the angles are drawn after the positions, part by part
    generator = torch.Generator().manual_seed(0)
    torch.randperm(80, generator=generator)
    for part, before in zip(parts, (upright.train, upright.validation, upright.test), strict=True):
        degrees = 360 * torch.rand(len(part.labels), generator=generator)
        torch.testing.assert_close(part.images, rotate(before.images, degrees))
        assert not torch.equal(part.images, before.images)


def test_the_data_set_is_a_pure_function_of_the_seed(small_folder):
    first, again, other = (SMALL.load("rotmnist-12k", seed, small_folder) for seed in (0, 0, 1))
    assert torch.equal(first.train.images, again.train.images)
    assert torch.equal(first.test.images, again.test.images)
    assert not torch.equal(first.train.images, other.train.images)


def test_images_are_moved_in_chunks_and_the_result_does_not_depend_on_them(small_folder, monkeypatch):
    whole = SMALL.load("rotmnist-12k", 0, small_folder)
    monkeypatch.setattr("tigranet.data.sources.named_data_set.CHUNK", 7)
    chunks = SMALL.load("rotmnist-12k", 0, small_folder)
    torch.testing.assert_close(whole.test.images, chunks.test.images)


def test_the_images_are_rotated_already_so_the_test_does_not_rotate_them():
    entry = REGISTRY["rotmnist-12k"]
    assert str(entry.training_motion) == "rotated"
    assert entry.training_motion.padding == "zeros"
    assert str(entry.test_motion) == "upright"


def test_the_digits_of_the_real_mnist(real_data):
    data = load("rotmnist-12k", folder=real_data)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [10_000, 2_000, 50_000]
    assert data.train.images.shape[1:] == (1, 28, 28)
    assert torch.bincount(data.test.labels).min() > 4_000
    # no direction is preferred: the mean image is nearly the same after a quarter turn
    mean = data.test.images.mean(0)
    assert (mean - mean.rot90(1, (1, 2))).abs().max() < 0.02
