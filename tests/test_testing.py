import pytest
import torch

from tigranet.testing import SQUARE, equivariance_error, invariance_error, on_nodes, torus_shift, torus_shifts


def test_the_square_has_eight_different_symmetries_that_form_a_group():
    image = torch.arange(9.0).reshape(3, 3)
    results = {name: transform(image) for name, transform in SQUARE.items()}
    assert len({tuple(result.flatten().tolist()) for result in results.values()}) == 8
    for first in SQUARE.values():
        for second in SQUARE.values():
            assert any(torch.equal(second(first(image)), result) for result in results.values())


def test_all_shifts_of_the_torus_differ():
    image = torch.arange(12.0).reshape(3, 4)
    assert len({tuple(shift(image).flatten().tolist()) for shift in torus_shifts(3, 4)}) == 12
    assert torus_shift(1, 0)(image)[1, 0] == image[0, 0]


def test_errors_are_numbers_relative_to_the_range():
    images = torch.tensor([[[[0.0, 1.0], [2.0, 4.0]]]])
    turn = SQUARE["90 degrees"]
    assert equivariance_error(lambda x: 3 * x, images, turn) == 0
    assert invariance_error(lambda x: x.sum((-1, -2)), images, turn) == 0
    assert invariance_error(lambda x: x, images, turn) == 3 / 4  # [[1, 4], [0, 2]] against [[0, 1], [2, 4]]
    assert equivariance_error(lambda x: x.cumsum(-1), images, turn) > 0.1


def test_a_function_of_signals():
    signals = torch.rand(2, 12)
    turned = on_nodes(SQUARE["90 degrees"], 3, 4)(signals)
    assert torch.equal(turned.reshape(2, 4, 3), torch.rot90(signals.reshape(2, 3, 4), 1, (1, 2)))


def test_answers_of_different_shape_are_refused():
    with pytest.raises(ValueError, match=r"has shape \(3, 2\), not \(2, 3\)"):
        invariance_error(lambda x: x, torch.rand(2, 3), SQUARE["90 degrees"])
