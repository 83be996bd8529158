import gzip

import numpy as np
import pytest

from tigranet.data.sources.mnist import PARTS, SHA256, checksum, find_mnist, load_mnist


def write_idx(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = header + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.mark.parametrize("place", ["", "MNIST/raw/", "mnist/"])
@pytest.mark.parametrize("spelling", ["{}", "{}.gz"])
@pytest.mark.parametrize("before", ["-idx", ".idx"])
def test_idx_files_are_read_where_people_keep_them(small_mnist, tmp_path, place, spelling, before, as_a_user):
    for part, array in zip(PARTS, small_mnist, strict=True):
        write_idx(tmp_path / (place + spelling.format(part.replace("-idx", before))), array)
    for came, wanted in zip(load_mnist(tmp_path), small_mnist, strict=True):
        np.testing.assert_array_equal(came, wanted)


def test_mnist_npz_is_read(small_mnist, tmp_path, as_a_user):
    np.savez(tmp_path / "mnist.npz", **dict(zip(("x_train", "y_train", "x_test", "y_test"), small_mnist, strict=True)))
    for came, wanted in zip(load_mnist(tmp_path), small_mnist, strict=True):
        np.testing.assert_array_equal(came, wanted)


def test_three_of_four_files_are_not_mnist(small_mnist, tmp_path):
    for part, array in list(zip(PARTS, small_mnist, strict=True))[:3]:
        write_idx(tmp_path / part, array)
    assert find_mnist(tmp_path) == []
    with pytest.raises(FileNotFoundError, match=r"there is no MNIST in '.*' \(mnist.npz, or .*'tigranet data fetch"):
        load_mnist(tmp_path)


def test_bad_files_are_named(small_mnist, tmp_path, as_a_user):
    for part, array in zip(PARTS, small_mnist, strict=True):
        write_idx(tmp_path / f"{part}.gz", array)
    cut = tmp_path / f"{PARTS[0]}.gz"
    cut.write_bytes(cut.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is no whole MNIST file"):
        load_mnist(tmp_path)
    write_idx(cut, small_mnist.train_images + 1)
    with pytest.raises(ValueError, match="does not hold the original MNIST: delete it and fetch it again"):
        load_mnist(tmp_path)
    cut.write_bytes(gzip.compress(b"<html>not found</html>"))
    with pytest.raises(ValueError, match="does not begin as an idx file"):
        load_mnist(tmp_path)


def test_the_real_files_are_mnist(real_data):
    assert checksum(tuple(load_mnist(real_data))) == SHA256
