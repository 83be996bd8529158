from dataclasses import replace

import pytest
import torch

from tigranet.data import ROTATED, LabelledImages


def test_selected_images_keep_their_labels_and_weights():
    data = LabelledImages(torch.rand(5, 1, 3, 3), torch.arange(5), torch.arange(5.0))
    selected = data.take(torch.tensor([3, 0]))
    assert selected.labels.tolist() == [3, 0]
    assert selected.weights.tolist() == [3, 0]
    assert torch.equal(selected.images[1], data.images[0])


def test_balanced_classes_have_equal_total_weight():
    labels = torch.tensor([0, 0, 0, 2, 2, 5])
    balanced = LabelledImages(torch.rand(6, 1, 3, 3), labels, torch.tensor([1.0, 2, 3, 4, 5, 6])).balanced()
    torch.testing.assert_close(torch.bincount(labels, balanced.weights), torch.tensor([7.0, 0, 7, 0, 0, 7]))


def test_test_images_are_rotated_by_default(mnist_012):
    assert mnist_012.test_motion == ROTATED


def test_classes_without_test_images_are_named(mnist_012):
    assert mnist_012.untested_classes == ()
    twos = mnist_012.test.take(torch.nonzero(mnist_012.test.labels == 2).flatten())
    assert replace(mnist_012, test=twos).untested_classes == ("0", "1")
    assert replace(mnist_012, test=mnist_012.test.take([])).untested_classes == ("0", "1", "2")


def test_test_images_can_be_required(mnist_012):
    assert mnist_012.require_test_images() is mnist_012.test
    with pytest.raises(ValueError, match="mnist-012 has no test images"):
        replace(mnist_012, test=mnist_012.test.take([])).require_test_images()
