from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tigranet.data import DataSet, LabelledImages
from tigranet.data.duplicates import DuplicateCounts
from tigranet.data.leakage import content_hash, exclude_duplicate_images, exclude_images, hash_images, hash_pictures

IMAGES = torch.rand(6, 1, 5, 5)
LABELLED = LabelledImages(IMAGES, torch.tensor([0, 1, 0, 1, 0, 1]))
HASHES = [content_hash(image) for image in IMAGES]
DATA = DataSet(
    "photos", ("a", "b"), LABELLED, LABELLED, LABELLED, test_files=tuple("uvwxyz"), test_positions=torch.arange(6)
)


def test_the_hash_depends_on_the_pixels_only():
    assert len(set(HASHES)) == 6
    for image, expected in zip(IMAGES, HASHES, strict=True):
        other_layout = image.transpose(1, 2).contiguous().transpose(1, 2)
        assert content_hash(image.clone()) == content_hash(other_layout) == expected
    changed = IMAGES[2].clone()
    changed[0, 4, 4] += 1e-3
    assert content_hash(changed) not in HASHES


def test_the_hash_of_a_batch_depends_on_the_order():
    assert content_hash(IMAGES) == content_hash(IMAGES.clone()) != content_hash(IMAGES.flip(0))
    assert content_hash(IMAGES) != content_hash(IMAGES[:5])


def test_each_image_has_its_own_hash():
    assert hash_images(IMAGES) == HASHES
    assert hash_images(IMAGES[:0]) == hash_pictures(IMAGES[:0]) == []


def test_pictures_are_the_same_up_to_rounding():
    bytes_ = torch.randint(0, 256, (4, 1, 5, 5)) / 255
    hashes = hash_pictures(bytes_)
    assert len(set(hashes)) == 4
    assert hash_pictures(bytes_ * (1 + 1e-6)) == hashes  # as the luminance of equal channels
    assert hash_images(bytes_ * (1 + 1e-6)) != hash_images(bytes_)
    assert not set(hash_pictures((bytes_ - 1 / 255).clamp(0))) & set(hashes)
    words = torch.randint(0, 65535, (4, 1, 5, 5)) / 65535
    assert not set(hash_pictures(words)) & set(hash_pictures(words + 1 / 65535))


def test_images_that_are_mapped_into_memory_are_hashed_one_by_one(tmp_path):
    pixels = np.memmap(tmp_path / "pixels", np.float32, "w+", shape=(6, 1, 5, 5))
    pixels[:] = IMAGES.numpy()
    mapped = torch.from_numpy(np.memmap(tmp_path / "pixels", np.float32, "c", shape=(6, 1, 5, 5)))
    assert hash_images(mapped) == HASHES
    assert hash_pictures(mapped) == hash_pictures(IMAGES)


def test_test_images_are_removed_and_the_others_keep_their_order():
    is_excluded = [False, True, False, False, True, False]
    data = exclude_images(DATA, is_excluded)
    assert torch.equal(data.test.images, IMAGES[[0, 2, 3, 5]])
    assert data.test.labels.tolist() == [0, 0, 1, 1]
    assert data.test_files == ("u", "w", "x", "z")
    assert data.test_positions.tolist() == [0, 2, 3, 5]
    assert data.train is DATA.train
    without_files = exclude_images(replace(DATA, test_files=None, test_positions=None), is_excluded)
    assert (without_files.test_files, without_files.test_positions) == (None, None)


def test_without_excluded_images_nothing_changes():
    assert exclude_images(DATA, [False] * 6) is DATA


def test_all_test_images_may_be_removed():
    assert exclude_images(DATA, [True] * 6).test.images.shape == (0, 1, 5, 5)


def test_duplicates_are_found_by_the_pixels():
    images = LabelledImages(IMAGES[[0, 1, 2, 1, 3]], torch.tensor([0, 1, 0, 1, 1]))
    parts = [torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3, 4])]
    remaining, counts = exclude_duplicate_images(Path("photos"), images, parts, repeated_rows=5)
    assert [part.tolist() for part in remaining] == [[0, 1], [2], [4]]
    assert counts == DuplicateCounts(repeated_rows=5, duplicate_images=1, excluded_test=1)
