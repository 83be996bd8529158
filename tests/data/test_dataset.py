import torch

from tigranet.data import ROTATED, LabelledImages


def test_some_are_taken_with_their_labels():
    data = LabelledImages(torch.rand(5, 1, 3, 3), torch.arange(5))
    taken = data.take(torch.tensor([3, 0]))
    assert taken.labels.tolist() == [3, 0]
    assert torch.equal(taken.images[1], data.images[0])


def test_a_set_is_tested_rotated_unless_it_says_otherwise(mnist_012):
    assert mnist_012.test_motion == ROTATED
