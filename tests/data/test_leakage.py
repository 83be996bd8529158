from dataclasses import replace

import pytest
import torch

from tigranet.data import DataSet, LabelledImages
from tigranet.data.leakage import content_hash, exclude_images

IMAGES = torch.rand(6, 1, 5, 5)
LABELLED = LabelledImages(IMAGES, torch.tensor([0, 1, 0, 1, 0, 1]))
HASHES = [content_hash(image) for image in IMAGES]
DATA = DataSet("photos", ("a", "b"), LABELLED, LABELLED, LABELLED, test_files=tuple("uvwxyz"))


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


def test_training_images_are_removed_and_the_others_keep_their_order():
    training_hashes = {HASHES[1], HASHES[4], "another"}
    data = exclude_images(DATA, training_hashes)
    assert torch.equal(data.test.images, IMAGES[[0, 2, 3, 5]])
    assert data.test.labels.tolist() == [0, 0, 1, 1]
    assert data.test_files == ("u", "w", "x", "z")
    assert data.train is DATA.train
    assert exclude_images(replace(DATA, test_files=None), training_hashes).test_files is None


def test_without_training_images_nothing_changes():
    assert exclude_images(DATA, {"another"}) is DATA
    assert exclude_images(DATA, ()) is DATA


def test_a_test_set_of_training_images_only_is_refused():
    with pytest.raises(ValueError, match=r"all 6 test images of photos"):
        exclude_images(DATA, set(HASHES))
