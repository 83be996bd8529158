import pytest
import torch

from tigranet.testing import SQUARE, equivariance_error, invariance_error, on_nodes, torus_shift, torus_shifts


def test_the_eight_symmetries_of_the_square_are_different_and_form_a_group():
    image = torch.arange(9.0).reshape(3, 3)
    results = {name: symmetry(image) for name, symmetry in SQUARE.items()}
    assert len({tuple(result.flatten().tolist()) for result in results.values()}) == 8
    for first in SQUARE.values():
        for second in SQUARE.values():
            assert any(torch.equal(second(first(image)), result) for result in results.values())


def test_all_shifts_of_the_torus_are_different():
    image = torch.arange(12.0).reshape(3, 4)
    assert len({tuple(shift(image).flatten().tolist()) for shift in torus_shifts(3, 4)}) == 12
    assert torus_shift(1, 0)(image)[1, 0] == image[0, 0]


def test_errors_are_relative_to_the_range_of_the_output():
    images = torch.tensor([[[[0.0, 1.0], [2.0, 4.0]]]])
    rotation = SQUARE["90 degrees"]
    assert equivariance_error(lambda x: 3 * x, images, rotation) == 0
    assert invariance_error(lambda x: x.sum((-1, -2)), images, rotation) == 0
    assert invariance_error(lambda x: x, images, rotation) == 3 / 4  # [[1, 4], [0, 2]] against [[0, 1], [2, 4]]
    assert equivariance_error(lambda x: x.cumsum(-1), images, rotation) > 0.1


def test_the_error_of_a_constant_output_is_the_absolute_difference():
    images = torch.tensor([[0.0, 1.0], [2.0, 4.0]])
    assert invariance_error(lambda x: x[..., :1, :1], images, SQUARE["90 degrees"]) == 1.0  # 1 instead of 0


def test_a_transform_of_images_acts_on_signals():
    signals = torch.rand(2, 12)
    rotated = on_nodes(SQUARE["90 degrees"], 3, 4)(signals)
    assert torch.equal(rotated.reshape(2, 4, 3), torch.rot90(signals.reshape(2, 3, 4), 1, (1, 2)))


def test_outputs_of_different_shapes_are_rejected():
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(3, 2\)"):
        invariance_error(lambda x: x, torch.rand(2, 3), SQUARE["90 degrees"])
