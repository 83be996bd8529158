from dataclasses import replace

import pytest
import torch

from tigranet.data import DataSet, LabelledImages
from tigranet.data.leakage import content_hash, exclude_images

IMAGES = torch.rand(6, 1, 5, 5)
EVERY = LabelledImages(IMAGES, torch.tensor([0, 1, 0, 1, 0, 1]))
MARKS = [content_hash(image) for image in IMAGES]
DATA = DataSet("own", ("a", "b"), EVERY, EVERY, EVERY, test_files=tuple("uvwxyz"))


def test_a_mark_is_of_the_pixels_alone():
    assert len(set(MARKS)) == 6
    for image, wanted in zip(IMAGES, MARKS, strict=True):
        assert content_hash(image.clone()) == content_hash(image.transpose(1, 2).contiguous().transpose(1, 2)) == wanted
    changed = IMAGES[2].clone()
    changed[0, 4, 4] += 1e-3
    assert content_hash(changed) not in MARKS


def test_many_images_have_one_mark_which_their_order_changes():
    assert content_hash(IMAGES) == content_hash(IMAGES.clone()) != content_hash(IMAGES.flip(0))
    assert content_hash(IMAGES) != content_hash(IMAGES[:5])


def test_what_was_seen_is_left_out_and_all_else_stays_in_its_order():
    seen = {MARKS[1], MARKS[4], "another"}
    left = exclude_images(DATA, seen)
    assert torch.equal(left.test.images, IMAGES[[0, 2, 3, 5]])
    assert left.test.labels.tolist() == [0, 0, 1, 1]
    assert left.test_files == ("u", "w", "x", "z")
    assert left.train is DATA.train
    assert exclude_images(replace(DATA, test_files=None), seen).test_files is None


def test_where_nothing_was_seen_nothing_changes():
    assert exclude_images(DATA, {"another"}) is DATA
    assert exclude_images(DATA, ()) is DATA


def test_where_all_were_seen_there_is_nothing_to_test():
    with pytest.raises(ValueError, match="the model was trained on all 6 images to test of own: give it others"):
        exclude_images(DATA, set(MARKS))
