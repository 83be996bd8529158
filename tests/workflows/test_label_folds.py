import torch

from tigranet.workflows.label_folds import is_judgeable, label_folds


def test_images_of_one_group_are_in_one_fold():
    labels = torch.arange(60) % 3
    groups = [f"object {number // 4}" for number in range(60)]
    folds = label_folds(labels, groups, 5, seed=0)
    assert len(folds.unique()) == 5
    assert len(set(zip(groups, folds.tolist(), strict=True))) == len(set(groups))
    assert torch.equal(folds, label_folds(labels, groups, 5, seed=0))


def test_few_groups_make_few_folds_and_one_group_cannot_be_judged():
    labels = torch.tensor([0, 0, 1, 1] * 3)
    groups = ["a", "b"] * 6
    assert len(label_folds(labels, groups, 5, seed=0).unique()) == 2
    folds = label_folds(labels, ["a"] * 12, 5, seed=0)
    assert not is_judgeable(labels, folds).any()


def test_a_class_of_one_group_cannot_be_judged():
    labels = torch.tensor([0] * 6 + [1] * 6)
    groups = ["a", "b", "c", "d", "e", "f"] + ["g"] * 6
    folds = label_folds(labels, groups, 3, seed=0)
    assert is_judgeable(labels, folds).tolist() == [True] * 6 + [False] * 6


def test_classes_of_one_and_two_images_cannot_be_judged_and_one_of_three_can():
    labels = torch.tensor([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
    folds = label_folds(labels, None, 5, seed=0)
    assert is_judgeable(labels, folds).tolist() == [False] * 3 + [True] * 7
