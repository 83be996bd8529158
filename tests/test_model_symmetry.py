"""The whole network is invariant to the symmetries of its graph."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model_examples import active_sets, difficult_images, oriented_network
from oracles import blank_with_patch
from tigranet import TIGraNet
from tigranet.testing import SQUARE, equivariance_error, invariance_error, torus_shift, torus_shifts


@pytest.mark.parametrize("name", SQUARE)
def test_logits_of_a_trained_network_are_invariant_to_rotations_and_reflections(trained, name):
    """The error is relative to the range of the logits of one image, which is stricter than that of a batch."""
    for image in difficult_images().split(1):
        assert invariance_error(trained, image, SQUARE[name]) < 1e-4
    double = copy.deepcopy(trained).double()
    for image in difficult_images(dtype=torch.float64).split(1):
        assert invariance_error(double, image, SQUARE[name]) < 1e-10


@pytest.mark.parametrize("name", SQUARE)
def test_logits_of_a_trained_network_are_invariant_on_real_digits(trained, mnist_012, name):
    assert invariance_error(trained, mnist_012.test.images, SQUARE[name]) < 1e-4


def test_logits_of_a_network_trained_on_the_torus_are_invariant_to_every_shift(trained_on_torus, mnist_012):
    images = torch.cat([mnist_012.test.images[:2], difficult_images()[3:7]])
    shifted = torch.stack([shift(images) for shift in torus_shifts(28, 28)])  # all 784 shifts
    with torch.inference_mode():
        logits = trained_on_torus(shifted.flatten(0, 1)).unflatten(0, (784, len(images)))
    assert (logits - logits[0]).abs().max() / (logits.max() - logits.min()) < 1e-4
    double = copy.deepcopy(trained_on_torus).double()
    shifts = [torus_shift(3, 5), torus_shift(14, 27), torus_shift(-1, 0), torus_shift(0, 1)]
    for transform in (*SQUARE.values(), *shifts):
        assert invariance_error(double, difficult_images(dtype=torch.float64), transform) < 1e-10
        assert invariance_error(trained_on_torus, difficult_images(), transform) < 1e-4


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["paper-small", "paper"]), st.sampled_from([17, 26]))
def test_logits_of_an_untrained_network_are_invariant(seed, preset, size):
    torch.manual_seed(seed)
    net = TIGraNet(preset, num_classes=5, init="paper").eval()
    images = torch.cat([torch.rand(1, 1, size, size), blank_with_patch(size, count=1, seed=seed)])
    assert max(invariance_error(net, images, transform) for transform in SQUARE.values()) < 1e-4


def test_active_sets_of_trained_networks_rotate_and_shift_with_the_image(trained, trained_on_torus, mnist_012):
    images = torch.cat([mnist_012.test.images[:20], blank_with_patch(28)])
    for transform in SQUARE.values():
        assert equivariance_error(active_sets(trained, 28), images, transform) == 0
    for shift in (torus_shift(1, 0), torus_shift(13, 22)):
        assert equivariance_error(active_sets(trained_on_torus, 28), images, shift) == 0


@pytest.mark.parametrize("preset", ["paper-small", "paper"])
def test_rounding_errors_are_far_smaller_than_the_tolerance_of_ties(preset):
    """Compares float32 and float64 maps, relative to the largest magnitude in each map."""
    net, images = TIGraNet(preset, num_classes=3), difficult_images()
    double = copy.deepcopy(net).double()
    for single, exact in zip(net.maps(images), double.maps(images.double()), strict=True):
        magnitude = exact.z.abs().amax(-1, keepdim=True).clamp(min=1e-30)
        assert ((single.z - exact.z).abs() / magnitude).max() < 2e-5


@pytest.mark.parametrize("preset", ["paper-small", "paper"])
def test_active_sets_on_blank_backgrounds_are_exactly_equivariant_and_the_same_in_float64(preset):
    images = blank_with_patch(30, patch=8, count=4)
    for boundary in ("free", "torus"):
        net = TIGraNet(preset, num_classes=3, boundary=boundary)
        active = active_sets(net, 30)
        for transform in SQUARE.values():
            assert equivariance_error(active, images, transform) == 0
        if boundary == "torus":
            for shift in (torus_shift(1, 0), torus_shift(0, 1), torus_shift(13, 22), torus_shift(-3, 9)):
                assert equivariance_error(active, images, shift) == 0
        double = active_sets(copy.deepcopy(net).double(), 30)
        assert torch.equal(active(images), double(images.double()))


def test_strict_ties_are_not_equivariant_on_blank_backgrounds():
    images = blank_with_patch(30, patch=8, count=4)
    active = active_sets(TIGraNet("paper-small", num_classes=3, ties="strict"), 30)
    assert max(equivariance_error(active, images, transform) for transform in SQUARE.values()) == 1


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("products", ["OP", "MP", "GP"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_oriented_networks_are_invariant_to_quarter_turns_and_shifts_and_without_op_to_reflections(
    boundary, products, dtype, tolerance
):
    net, images = oriented_network(products, boundary, dtype), difficult_images(17, dtype)
    for name, transform in SQUARE.items():
        error = invariance_error(net.features, images, transform)
        assert error > 1e-3 if products == "OP" and "reflected" in name else error < tolerance, name
    for shift in (torus_shift(3, 5), torus_shift(-1, 16)):
        assert (invariance_error(net.features, images, shift) < tolerance) == (boundary == "torus")
