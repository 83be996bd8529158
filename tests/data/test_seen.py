from dataclasses import replace

import pytest
import torch

from tigranet.data import DataSet, Labelled
from tigranet.data.seen import marks, without_seen

IMAGES = torch.rand(6, 1, 5, 5)
EVERY = Labelled(IMAGES, torch.tensor([0, 1, 0, 1, 0, 1]))
DATA = DataSet("own", ("a", "b"), EVERY, EVERY, EVERY, test_files=tuple("uvwxyz"))


def test_a_mark_is_of_the_pixels_alone():
    assert len(set(marks(IMAGES))) == 6
    assert marks(IMAGES.flip(0)) == marks(IMAGES)[::-1]
    assert marks(IMAGES.repeat(2, 1, 1, 1).transpose(2, 3).contiguous().transpose(2, 3)) == 2 * marks(IMAGES)
    changed = IMAGES.clone()
    changed[2, 0, 4, 4] += 1e-3
    assert [a == b for a, b in zip(marks(IMAGES), marks(changed), strict=True)] == [True, True, False, True, True, True]
    assert marks(IMAGES[:0]) == []


def test_what_was_seen_is_left_out_and_all_else_stays_in_its_order():
    seen = {marks(IMAGES)[1], marks(IMAGES)[4], "another"}
    left = without_seen(DATA, seen)
    assert torch.equal(left.test.images, IMAGES[[0, 2, 3, 5]])
    assert left.test.labels.tolist() == [0, 0, 1, 1]
    assert left.test_files == ("u", "w", "x", "z")
    assert left.train is DATA.train
    assert without_seen(replace(DATA, test_files=None), seen).test_files is None


def test_where_nothing_was_seen_nothing_changes():
    assert without_seen(DATA, {"another"}) is DATA
    assert without_seen(DATA, ()) is DATA


def test_where_all_were_seen_there_is_nothing_to_test():
    with pytest.raises(ValueError, match="the model was trained on all 6 images to test of own: give it others"):
        without_seen(DATA, set(marks(IMAGES)))
