"""The precision holds within a block, for products and convolutions alike, and is restored after it."""

import pytest
import torch

from tigranet.matrix_precision import convolutions_as_products, matrix_precision


def settings():
    return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize("tf32", [True, False])
def test_the_precision_is_set_within_the_block_and_restored(tf32):
    before = settings()
    with matrix_precision(tf32):
        assert settings() == ("high" if tf32 else "highest", tf32)
        with convolutions_as_products():
            assert settings() == ("high" if tf32 else "highest", tf32)
    assert settings() == before


def test_convolutions_are_exact_where_products_are():
    before = settings()
    assert before == ("highest", True)
    with convolutions_as_products():
        assert settings() == ("highest", False)
    assert settings() == before


def test_the_precision_is_restored_after_an_error():
    before = settings()
    with pytest.raises(KeyError), matrix_precision(tf32=True):
        raise KeyError
    with pytest.raises(KeyError), convolutions_as_products():
        raise KeyError
    assert settings() == before
