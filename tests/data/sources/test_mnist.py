import gzip

import numpy as np
import pytest
import torch

from tigranet.data.sources.mnist import IDX_NAMES, MNIST, SHA256, checksum, find_mnist, load_mnist


def write_idx(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = header + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def assert_equal_arrays(actual, expected):
    for actual_array, expected_array in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(actual_array, expected_array)


@pytest.mark.parametrize("folder", ["", "MNIST/raw/", "mnist/"])
@pytest.mark.parametrize("spelling", ["{}", "{}.gz"])
@pytest.mark.parametrize("separator", ["-idx", ".idx"])
def test_idx_files_are_found_in_the_usual_places(
    small_mnist, tmp_path, folder, spelling, separator, without_shape_checks
):
    for name, array in zip(IDX_NAMES, small_mnist, strict=True):
        write_idx(tmp_path / (folder + spelling.format(name.replace("-idx", separator))), array)
    assert_equal_arrays(load_mnist(tmp_path), small_mnist)
    assert all(array.flags.writeable for array in load_mnist(tmp_path))  # PyTorch warns of others


def test_an_npz_file_is_read(small_mnist, tmp_path, without_shape_checks):
    np.savez(tmp_path / "mnist.npz", **dict(zip(("x_train", "y_train", "x_test", "y_test"), small_mnist, strict=True)))
    assert_equal_arrays(load_mnist(tmp_path), small_mnist)


def test_the_pool_has_its_own_test_images(small_mnist, tmp_path, without_shape_checks):
    np.savez(tmp_path / "mnist.npz", **dict(zip(("x_train", "y_train", "x_test", "y_test"), small_mnist, strict=True)))
    assert MNIST.there(tmp_path)
    pool = MNIST.load_pool(tmp_path)
    assert torch.equal(pool.images.images, torch.from_numpy(small_mnist.train_images)[:, None] / 255)
    assert torch.equal(pool.test_images.images, torch.from_numpy(small_mnist.test_images)[:, None] / 255)
    assert pool.images.labels.tolist() == small_mnist.train_labels.tolist()
    assert pool.test_images.labels.tolist() == small_mnist.test_labels.tolist()


def test_three_of_the_four_files_are_not_enough(small_mnist, tmp_path):
    for name, array in list(zip(IDX_NAMES, small_mnist, strict=True))[:3]:
        write_idx(tmp_path / name, array)
    assert find_mnist(tmp_path) == []
    assert not MNIST.there(tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"mnist\.npz.*'tigranet data fetch --data-dir {tmp_path}'.*TIGRANET_"):
        load_mnist(tmp_path)


def test_damaged_and_wrong_files_are_named(small_mnist, tmp_path, without_shape_checks):
    for name, array in zip(IDX_NAMES, small_mnist, strict=True):
        write_idx(tmp_path / f"{name}.gz", array)
    first = tmp_path / f"{IDX_NAMES[0]}.gz"
    first.write_bytes(first.read_bytes()[:-100])
    with pytest.raises(ValueError, match=rf"{IDX_NAMES[0]}\.gz' is damaged.*fetch it again"):
        load_mnist(tmp_path)
    write_idx(first, small_mnist.train_images + 1)
    with pytest.raises(ValueError, match=rf"{IDX_NAMES[0]}\.gz'.*not hold the original MNIST.*fetch it again"):
        load_mnist(tmp_path)
    first.write_bytes(gzip.compress(b"<html>not found</html>"))
    with pytest.raises(ValueError, match=rf"{IDX_NAMES[0]}\.gz' is damaged.*idx file"):
        load_mnist(tmp_path)


def test_the_real_files_have_the_checksum_of_mnist(real_data):
    assert checksum(tuple(load_mnist(real_data))) == SHA256
