from pathlib import Path

import pytest
import torch

from tigranet.data import Isometry, LabelledImages
from tigranet.data.sources.named_data_set import NamedDataSet
from tigranet.data.sources.source import ImagePool, LabelledBytes, Source


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


def unequal_classes(counts=(90, 27, 3)):
    """Numbered images of one pixel, in classes of different sizes."""
    labels = torch.cat([torch.full((count,), label) for label, count in enumerate(counts)])
    return LabelledImages(torch.arange(len(labels)).float().reshape(-1, 1, 1, 1), labels)


@pytest.mark.parametrize("seed", [0, 1])
def test_stratified_parts_have_every_class_in_proportion(seed):
    data_set = NamedDataSet(
        "about", source_of(ImagePool(unequal_classes())), tuple("abc"), (72, 8, 40), stratified=True
    )
    data = load(data_set, seed)
    parts = (data.train, data.validation, data.test)
    assert sorted(pixel for part in parts for pixel in pixels(part)) == list(range(120))
    assert torch.bincount(data.test.labels).tolist() == [30, 9, 1]  # a third of each class
    assert torch.bincount(data.validation.labels).tolist() == [5, 2, 1]
    assert torch.bincount(data.train.labels).tolist() == [55, 16, 1]
    for part in parts:
        assert part.labels.tolist() == [0 if pixel < 90 else 1 if pixel < 117 else 2 for pixel in pixels(part)]
    assert pixels(data.train) != sorted(pixels(data.train))  # in random order
    assert pixels(load(data_set, seed).test) == pixels(data.test)
    assert pixels(load(data_set, seed + 1).test) != pixels(data.test)


def test_images_that_are_drawn_already_stay_in_their_order_and_are_not_moved():
    pool = ImagePool(numbered(12), is_drawn=True)
    motion = Isometry(rotated=True)
    data = load(NamedDataSet("about", source_of(pool), tuple("abc"), (7, 2, 3), training_motion=motion), seed=5)
    assert [pixels(part) for part in (data.train, data.validation, data.test)] == [
        list(range(7)), [7, 8], [9, 10, 11],
    ]  # fmt: skip
    assert data.training_motion == motion


def test_the_training_movement_moves_the_images_of_all_parts_once():
    images = torch.zeros(90, 1, 9, 9)
    images[:, :, 4, 4] = 1
    pool = ImagePool(LabelledImages(images, torch.arange(90) % 3), LabelledImages(images, torch.arange(90) % 3))
    motion = Isometry(max_shift=2)
    data_set = NamedDataSet("about", source_of(pool), tuple("abc"), (60, 20), training_motion=motion)
    data = load(data_set)
    for part in (data.train, data.validation, data.test):
        assert len(torch.unique(part.images, dim=0)) > 10
        assert (part.images.sum((1, 2, 3)) == 1).all()
    assert (images[:, :, 4, 4] == 1).all()  # those of the source stay
    assert data.training_motion == motion
    assert torch.equal(load(data_set).test.images, data.test.images)
    assert not torch.equal(load(data_set, seed=1).test.images, data.test.images)


def test_images_of_bytes_are_converted_after_the_draw():
    pixels_of_bytes = torch.arange(90, dtype=torch.uint8).reshape(-1, 1, 1, 1)
    labels = torch.arange(90) % 3
    of_bytes, of_floats = (
        load(NamedDataSet("about", source_of(ImagePool(images)), tuple("abc"), (50, 10, 20)))
        for images in (LabelledBytes(pixels_of_bytes, labels), LabelledImages(pixels_of_bytes / 255, labels))
    )
    for part in ("train", "validation", "test"):
        assert torch.equal(getattr(of_bytes, part).images, getattr(of_floats, part).images)
        assert torch.equal(getattr(of_bytes, part).labels, getattr(of_floats, part).labels)
