import numpy as np
import torch

from tigranet.data.sources.source import labelled_grey


def test_grey_bytes_become_one_channel_in_the_unit_range():
    pixels = np.array([[[0, 51], [102, 255]]], np.uint8)
    images = labelled_grey(pixels, np.array([7], np.uint8))
    torch.testing.assert_close(images.images, torch.tensor([[[[0.0, 0.2], [0.4, 1.0]]]]))
    assert images.labels.dtype == torch.int64
    assert images.labels.tolist() == [7]
