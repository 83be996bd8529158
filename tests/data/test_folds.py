import pytest
import torch

from images import fill
from tigranet.data import DataSet, LabelledImages, load_user_data
from tigranet.data.folds import make_folds
from tigranet.data.leakage import hash_pictures


def data_set(counts, test=0, groups=None, seed=0):
    labels = torch.tensor([label for label, count in enumerate(counts) for _ in range(count)])
    images = torch.rand(len(labels), 1, 3, 3, generator=torch.Generator().manual_seed(seed))
    empty = LabelledImages(images[:0], labels[:0])
    test_part = LabelledImages(torch.rand(test, 1, 3, 3), torch.zeros(test, dtype=torch.int64))
    names = None if groups is None else (tuple(groups), (), ("t",) * test)
    train = LabelledImages(images, labels)
    return DataSet("d", tuple("abc"[: len(counts)]), train, empty, test_part, groups=names)


def hashes(part):
    return hash_pictures(part.images)


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_every_image_is_tested_once_and_never_trained_on_in_its_fold(folds):
    data = data_set([11, 7])
    tested = []
    for fold in make_folds(data, folds):
        parts = [set(hashes(part)) for part in (fold.train, fold.validation, fold.test)]
        assert sum(map(len, parts)) == 18 == len(set.union(*parts))
        assert all(set(part.labels.tolist()) == {0, 1} for part in (fold.train, fold.validation, fold.test))
        tested += hashes(fold.test)
    assert sorted(tested) == sorted(hashes(data.train))


def test_folds_are_stratified_and_repeat_with_the_seed():
    data = data_set([20, 10])
    first, again, other = (make_folds(data, 5, seed) for seed in (1, 1, 2**63 - 1))
    for (_, _, test), (_, _, same) in zip(first.positions, again.positions, strict=True):
        assert torch.equal(test, same)
        assert data.train.labels[test].bincount().tolist() == [4, 2]
    assert not torch.equal(first.positions[0][2], other.positions[0][2])


def test_chosen_test_images_are_not_folded_and_drawn_ones_are(tmp_path):
    chosen = data_set([8, 8], test=5)
    assert sum(len(fold.test.labels) for fold in make_folds(chosen, 2)) == 16
    photos = fill(tmp_path / "photos", {"a": 10, "b": 12})
    drawn, _ = load_user_data(photos)
    folds = make_folds(drawn, 2)
    assert sum(len(fold.test.labels) for fold in folds) == 22
    assert {content for fold in folds for content in hashes(fold.test)} == {
        content for part in (drawn.train, drawn.validation, drawn.test) for content in hashes(part)
    }


def test_copies_and_groups_are_never_separated():
    """A copy of an image in another group joins both groups."""
    groups = [f"g{number // 3}" for number in range(24)] + [f"h{number // 3}" for number in range(24)]
    data = data_set([24, 24], groups=groups)
    data.train.images[5] = data.train.images[6]  # in g1 and g2
    data.train.images[30] = data.train.images[31]
    for train, validation, test in make_folds(data, 4).positions:
        sides = [{groups[position] for position in part.tolist()} for part in (train, validation, test)]
        assert not sides[0] & sides[1]
        assert not (sides[0] | sides[1]) & sides[2]
        assert sum("g1" in side or "g2" in side for side in sides) == 1
        contents = [set(hash_pictures(data.train.images[part])) for part in (train, validation, test)]
        assert sum(map(len, contents)) == len(set.union(*contents))


def test_groups_of_a_folder_are_those_of_its_images(tmp_path):
    photos = fill(tmp_path / "photos", {"a": 20, "b": 20})
    data, _ = load_user_data(photos, group=r"\d\d\d")
    assert [len(names) for names in data.groups] == [
        len(part.labels) for part in (data.train, data.validation, data.test)
    ]
    assert not set(data.groups[0]) & set(data.groups[2])


@pytest.mark.parametrize(
    ("counts", "folds", "words"),
    [([10, 4], 5, "5.*'b'.*4"), ([10, 3], 2, "4.*'b'.*3"), ([10, 10], 1, "at least 2 folds, got 1")],
)
def test_too_few_images_for_the_folds_are_an_error_that_names_the_class(counts, folds, words):
    with pytest.raises(ValueError, match=words):
        make_folds(data_set(counts), folds)


def test_copies_do_not_count_as_different_images():
    data = data_set([10, 5])
    data.train.images[10:] = data.train.images[10]
    with pytest.raises(ValueError, match=r"5 different images of the class 'b'.*got 1"):
        make_folds(data, 5)
