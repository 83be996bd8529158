import numpy as np
import torch

from tigranet.data.sources.source import labelled_bytes, labelled_grey


def test_grey_bytes_become_one_channel_in_the_unit_range():
    pixels = np.array([[[0, 51], [102, 255]]], np.uint8)
    images = labelled_grey(pixels, np.array([7], np.uint8))
    torch.testing.assert_close(images.images, torch.tensor([[[[0.0, 0.2], [0.4, 1.0]]]]))
    assert images.labels.dtype == torch.int64
    assert images.labels.tolist() == [7]


def test_selected_bytes_become_the_same_numbers_as_all_images():
    """Dividing after the selection gives the same bits as before it."""
    pixels = np.arange(256, dtype=np.uint8).reshape(4, 1, 8, 8)
    labels = np.array([3, 1, 2, 0], np.uint8)
    images = labelled_bytes(pixels, labels)
    assert images.images.dtype == torch.uint8
    assert images.labels.tolist() == [3, 1, 2, 0]
    selected = images.take(torch.tensor([2, 0, 2]))
    assert torch.equal(selected.images, labelled_grey(pixels[:, 0], labels).images[[2, 0, 2]])
    assert selected.labels.tolist() == [2, 3, 2]
    assert images.images.flatten().tolist() == list(range(256))  # the conversion works on a copy
