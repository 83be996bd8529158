import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from python2_pickles import pickle_python2
from tigranet.data import load
from tigranet.data.sources import cifar10
from tigranet.data.sources.cifar10 import BATCHES, CIFAR10, CLASSES, Cifar10, find_cifar10, load_cifar10
from tigranet.data.sources.registry import check_sources

PER_BATCH = 20


@pytest.fixture
def small(monkeypatch) -> Cifar10:
    """100 training and 20 test images, which are accepted as CIFAR-10."""
    monkeypatch.setattr(cifar10, "IMAGES_PER_BATCH", PER_BATCH)
    monkeypatch.setattr(cifar10, "TRAIN_IMAGES_PER_CLASS", 10)
    monkeypatch.setattr(cifar10, "TEST_IMAGES_PER_CLASS", 2)
    rng = np.random.default_rng(0)
    return Cifar10(
        rng.integers(0, 256, (100, 3, 32, 32), dtype=np.uint8),
        rng.permutation(np.arange(100, dtype=np.uint8) % 10),
        rng.integers(0, 256, (20, 3, 32, 32), dtype=np.uint8),
        rng.permutation(np.arange(20, dtype=np.uint8) % 10),
    )


def write_npz(folder: Path, small: Cifar10, **changes) -> Path:
    images = {f"x_{part}": getattr(small, f"{part}_images").transpose(0, 2, 3, 1) for part in ("train", "test")}
    labels = {f"y_{part}": getattr(small, f"{part}_labels") for part in ("train", "test")}
    np.savez(folder / "cifar10.npz", **{**images, **labels, "class_names": np.array(CLASSES), **changes})
    return folder / "cifar10.npz"


def batches(small: Cifar10) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the pixels and labels of each official file, one image per row."""
    pixels = np.concatenate([small.train_images, small.test_images]).reshape(6, PER_BATCH, 3072)
    labels = np.concatenate([small.train_labels, small.test_labels]).reshape(6, PER_BATCH)
    return dict(zip(BATCHES, zip(pixels, labels, strict=True), strict=True))


def binary_files(small: Cifar10) -> dict[str, bytes]:
    return {
        f"{name}.bin": np.concatenate([labels[:, None], pixels], 1).tobytes()
        for name, (pixels, labels) in batches(small).items()
    }


def python_files(small: Cifar10) -> dict[str, bytes]:
    return {
        name: pickle_python2(
            {"batch_label": name, "labels": labels.tolist(), "data": pixels, "filenames": ["a.png"] * PER_BATCH}
        )
        for name, (pixels, labels) in batches(small).items()
    }


def write_folder(path: Path, files: dict[str, bytes]) -> Path:
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


def write_archive(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in reversed(files.items()):  # the order in the archive does not matter
            member = tarfile.TarInfo(f"cifar-10-batches/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


WRITERS = {
    "npz": write_npz,
    "binary folder": lambda folder, small: write_folder(folder / "cifar-10-batches-bin", binary_files(small)),
    "binary archive": lambda folder, small: write_archive(folder / "cifar-10-binary.tar.gz", binary_files(small)),
    "Python folder": lambda folder, small: write_folder(folder / "cifar-10-batches-py", python_files(small)),
    "Python archive": lambda folder, small: write_archive(folder / "cifar-10-python.tar.gz", python_files(small)),
}


@pytest.mark.parametrize("written_as", WRITERS)
def test_all_versions_have_the_same_images_in_the_same_order(small, tmp_path, written_as):
    path = WRITERS[written_as](tmp_path, small)
    assert find_cifar10(tmp_path) == path
    for actual, expected in zip(load_cifar10(tmp_path), small, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_labels_of_an_npz_file_may_be_a_column(small, tmp_path):
    """Some libraries store labels with the shape (images, 1)."""
    write_npz(tmp_path, small, y_train=small.train_labels[:, None].astype(np.int64))
    np.testing.assert_array_equal(load_cifar10(tmp_path).train_labels, small.train_labels)


def test_the_npz_file_has_precedence_over_folders_and_these_over_archives(small, tmp_path):
    paths = {name: write(tmp_path, small) for name, write in WRITERS.items()}
    for name in ("npz", "binary folder", "Python folder", "binary archive", "Python archive"):
        path = paths[name]
        assert find_cifar10(tmp_path) == path
        path.rename(path.with_name(f"not {path.name}"))
    assert find_cifar10(tmp_path) is None


def test_an_incomplete_folder_is_not_used(small, tmp_path):
    folder = WRITERS["Python folder"](tmp_path, small)
    (folder / "test_batch").unlink()
    assert not CIFAR10.there(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=rf"no CIFAR-10 in '{tmp_path}'.*cifar-10-python\.tar\.gz.*cifar10\.npz.*TIGRANET_DATA"
    ):
        load_cifar10(tmp_path)


@pytest.mark.parametrize("written_as", ["binary folder", "Python folder"])
def test_a_truncated_file_is_named(small, tmp_path, written_as):
    path = next(file for file in WRITERS[written_as](tmp_path, small).iterdir() if file.name.startswith("data_batch_3"))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match=rf"'{path.parent}' cannot be read as CIFAR-10: {path.name}: .*download it"):
        load_cifar10(tmp_path)


@pytest.mark.parametrize("written_as", ["npz", "binary archive", "Python archive"])
def test_damaged_archives_are_one_error_that_names_the_file(small, tmp_path, written_as):
    path = WRITERS[written_as](tmp_path, small)
    content = path.read_bytes()
    for damaged in (b"", content[:1000], content[: len(content) // 2], b"<html>not found</html>", content[::-1]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"'{path}'"):
            load_cifar10(tmp_path)


def test_an_archive_without_a_batch_names_it(small, tmp_path):
    files = binary_files(small)
    del files["data_batch_4.bin"]
    write_archive(tmp_path / "cifar-10-binary.tar.gz", files)
    with pytest.raises(ValueError, match=r"data_batch_4\.bin"):
        load_cifar10(tmp_path)


def test_a_pickle_that_would_run_code_is_refused(small, tmp_path):
    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made-by-attack"),)

    files = python_files(small) | {"data_batch_2": pickle.dumps({"data": Attack()}, 2)}
    write_folder(tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(ValueError, match=r"data_batch_2: .*mkdir, which could run code"):
        load_cifar10(tmp_path)
    assert check_sources(tmp_path)["CIFAR-10"].startswith("bad: ")
    assert not (tmp_path / "made-by-attack").exists()


@pytest.mark.parametrize(
    ("batch", "received"),
    [
        ({"labels": [0] * PER_BATCH}, "'data' of shape .*got none"),
        ({"data": np.zeros((PER_BATCH, 3), np.uint8), "labels": [0] * PER_BATCH}, r"\(20, 3072\), got \(20, 3\)"),
        ({"data": "zeros", "labels": [0] * PER_BATCH}, r"\(20, 3072\), got none"),
        ({"data": np.zeros((PER_BATCH, 3072), np.uint8)}, "'labels' of 20 numbers"),
        ({"data": np.zeros((PER_BATCH, 3072), np.uint8), "labels": [0]}, "'labels' of 20 numbers"),
        ({"data": np.zeros((PER_BATCH, 3072), np.uint8), "labels": [10] * PER_BATCH}, "numbers from 0 to 9"),
        ({"data": np.zeros((PER_BATCH, 3072), np.uint8), "labels": [[1]] * PER_BATCH}, "numbers from 0 to 9"),
        ({"data": np.zeros((PER_BATCH, 3072), np.uint8), "labels": ["1"] * PER_BATCH}, "numbers from 0 to 9"),
    ],
)
def test_other_pickles_are_refused(small, tmp_path, batch, received):
    write_folder(tmp_path / "cifar-10-batches-py", python_files(small) | {"test_batch": pickle_python2(batch)})
    with pytest.raises(ValueError, match=f"test_batch: .*{received}"):
        load_cifar10(tmp_path)


def test_files_that_are_too_large_are_refused(small, tmp_path, monkeypatch):
    monkeypatch.setattr(cifar10, "MAX_BATCH_BYTES", 1000)
    WRITERS["binary archive"](tmp_path, small)
    with pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz.*more than 1,000 bytes"):
        load_cifar10(tmp_path)


def test_a_missing_image_is_reported(small, tmp_path):
    labels = small.train_labels.copy()
    labels[labels == 3] = 4
    write_npz(tmp_path, small, y_train=labels)
    with pytest.raises(ValueError, match=r"10 training and 2 test .*got 10, 10, 10, 0, 20, 10, .*cifar10\.npz"):
        load_cifar10(tmp_path)


@pytest.mark.parametrize(
    "images", [np.zeros((100, 32, 32), np.uint8), np.zeros((99, 32, 32, 3), np.uint8), np.zeros((100, 32, 32, 3))]
)
def test_images_of_another_number_size_or_type_are_refused(small, tmp_path, images):
    write_npz(tmp_path, small, x_train=images)
    with pytest.raises(ValueError, match=rf"\(100, 32, 32, 3\), got {images.dtype}.*cifar10\.npz"):
        load_cifar10(tmp_path)


def test_the_pool_has_bytes_and_its_own_test_images(small, tmp_path):
    write_npz(tmp_path, small)
    pool = CIFAR10.load_pool(tmp_path)
    assert torch.equal(pool.images.images, torch.from_numpy(small.train_images))
    assert torch.equal(pool.test_images.images, torch.from_numpy(small.test_images))
    assert pool.test_images.labels.tolist() == small.test_labels.tolist()
    assert check_sources(tmp_path)["CIFAR-10"] == "good: 100 + 20 images of 10 classes"


def test_the_real_files():
    folder = Path(os.environ.get("TIGRANET_DATA", "nowhere"))
    if find_cifar10(folder) is None:
        pytest.skip("needs CIFAR-10 in the folder in TIGRANET_DATA")
    data = load("cifar10", folder=folder)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [45_000, 5_000, 10_000]
    means = (data.train.images.mean((0, 2, 3)) * 9 + data.validation.images.mean((0, 2, 3))) / 10
    torch.testing.assert_close(means, torch.tensor([0.4914, 0.4822, 0.4465]), rtol=0, atol=1e-4)  # as published
    assert data.test.labels[:7].tolist() == [3, 8, 8, 0, 6, 6, 1]
