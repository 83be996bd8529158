from pathlib import Path

import pytest
import torch

from tigranet.data import Isometry, LabelledImages
from tigranet.data.sources.named_data_set import NamedDataSet
from tigranet.data.sources.source import ImagePool, Source


def numbered(count, first=0):
    """Images of one pixel, each with its own value. There are three classes."""
    return LabelledImages(torch.arange(first, first + count).float().reshape(-1, 1, 1, 1), torch.arange(count) % 3)


def source_of(pool):
    return Source("numbers", lambda _: True, lambda _: pool)


def load(data_set, seed=0):
    return data_set.load("numbers", seed, Path("nowhere"))


def pixels(part):
    return part.images.flatten().tolist()


def test_images_are_drawn_at_random_and_no_image_is_in_two_parts():
    data_set = NamedDataSet("about", source_of(ImagePool(numbered(90))), tuple("abc"), (50, 10, 20))
    data = load(data_set)
    parts = [pixels(part) for part in (data.train, data.validation, data.test)]
    assert [len(part) for part in parts] == [50, 10, 20]
    assert len({pixel for part in parts for pixel in part}) == 80
    assert data.train.labels.tolist() == [pixel % 3 for pixel in parts[0]]
    assert pixels(load(data_set).train) == parts[0]
    assert pixels(load(data_set, seed=1).train) != parts[0]


def test_further_classes_are_left_out():
    pool = ImagePool(numbered(90), numbered(30, first=1000))
    data = load(NamedDataSet("about", source_of(pool), tuple("ab"), (40, 20)))
    assert data.class_names == ("a", "b")
    for part in (data.train, data.validation, data.test):
        assert set(part.labels.tolist()) == {0, 1}


def test_the_test_images_of_the_source_are_all_used():
    pool = ImagePool(numbered(90), numbered(30, first=1000))
    data = load(NamedDataSet("about", source_of(pool), tuple("abc"), (40, 20)))
    assert [len(part.labels) for part in (data.train, data.validation)] == [40, 20]
    assert pixels(data.test) == list(range(1000, 1030))


@pytest.mark.parametrize("seed", [0, 1])
def test_whole_objects_are_in_one_part(seed):
    objects = torch.arange(90) % 15  # five objects per class, six views of each
    pool = ImagePool(numbered(90), objects=objects)
    data = load(NamedDataSet("about", source_of(pool), tuple("abc"), (3, 1, 1), whole_objects=True), seed)
    parts = [{int(pixel) % 15 for pixel in pixels(part)} for part in (data.train, data.validation, data.test)]
    assert [len(part) for part in parts] == [9, 3, 3]
    assert len(set().union(*parts)) == 15
    assert torch.bincount(data.test.labels).tolist() == [6] * 3


def test_images_are_framed_and_the_movement_is_passed_on():
    motion = Isometry(max_shift=2)
    source = source_of(ImagePool(numbered(90)))
    data_set = NamedDataSet(
        "about", source, tuple("abc"), (50, 10, 20), frame=lambda images: images.repeat(1, 1, 2, 2), test_motion=motion
    )
    data = load(data_set)
    assert data.name == "numbers"
    assert data.test_motion == motion
    for part in (data.train, data.validation, data.test):
        assert part.images.shape[1:] == (1, 2, 2)
