import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigranet import DynamicPool
from tigranet.layers.dynamic_pool import check_ties
from tigranet.testing import SQUARE, equivariance_error


def algorithm_1(z, omega, num_active):
    """The paper's loop with min instead of max (reading 1): one argmax after the other."""
    active = torch.zeros_like(z, dtype=torch.bool)
    for b in range(z.shape[0]):
        for i in range(z.shape[1]):
            remaining = omega[b, 0].clone()
            for _ in range(min(num_active, int(remaining.sum()))):
                nu = int(torch.where(remaining, z[b, i], -torch.inf).argmax())
                remaining[nu] = False
                active[b, i, nu] = True
    return active


# the layer computes what the paper defines


@pytest.mark.parametrize("ties", ["keep", "strict"])
@pytest.mark.parametrize("num_active", [1, 7, 19, 20, 50])
def test_without_ties_the_result_is_that_of_algorithm_1(ties, num_active):
    z = torch.stack([torch.randperm(20).float() - 9 for _ in range(6)]).reshape(2, 3, 20)
    omega = torch.rand(2, 1, 20) < 0.7
    expected = algorithm_1(z, omega, num_active)
    assert torch.equal(DynamicPool(num_active, ties)(z, omega), expected)
    everywhere = torch.ones_like(omega)
    assert torch.equal(DynamicPool(num_active, ties)(z), algorithm_1(z, everywhere, num_active))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(["keep", "strict"]), st.integers(1, 14))
def test_active_nodes_are_in_omega_and_not_below_the_other_nodes(data, ties, num_active):
    values = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 0.5000001, 1.0, 3.0])
    z = torch.tensor(data.draw(st.lists(values, min_size=24, max_size=24))).reshape(1, 2, 12)
    omega = torch.tensor(data.draw(st.lists(st.booleans(), min_size=12, max_size=12))).reshape(1, 1, 12)
    active = DynamicPool(num_active, ties)(z, omega)
    size = int(omega.sum())
    assert not (active & ~omega).any()
    for i in range(2):
        inside, outside = z[0, i][active[0, i]], z[0, i][omega[0, 0] & ~active[0, i]]
        assert len(inside) == min(num_active, size) if ties == "strict" else len(inside) >= min(num_active, size)
        if len(inside) and len(outside):
            assert inside.min() >= outside.max() - 1e-6


def test_values_outside_omega_do_not_set_the_scale_of_ties():
    z = torch.tensor([[[1.0, 0.9, 0.8, 1e6]]])
    omega = torch.tensor([[[True, True, True, False]]])
    assert DynamicPool(1)(z, omega).tolist() == [[[True, False, False, False]]]


# the layer has the symmetry that its docstring claims


def test_ties_are_kept_together():
    z = torch.tensor([[[5.0, 0.0, 0.0, 1e-5, -1.0]]])
    assert DynamicPool(2)(z).tolist() == [[[True, True, True, True, False]]]


@pytest.mark.parametrize("name", SQUARE)
def test_the_active_nodes_rotate_with_the_image_on_a_blank_background(name):
    image = torch.zeros(1, 2, 8, 8)
    image[:, :, 2:4, 3:6] = torch.rand(1, 2, 2, 3)

    def pool(image):
        return DynamicPool(20)(image.flatten(2)).reshape(image.shape).float()

    assert equivariance_error(pool, image, SQUARE[name]) == 0


def test_exactly_j_nodes_are_not_equivariant():
    """The paper's arbitrary choice among equal values does not rotate with the image; the default keeps ties."""
    image = torch.zeros(1, 1, 8, 8)
    image[..., 3, 4] = 1

    def pool(image):
        return DynamicPool(5, ties="strict")(image.flatten(2)).reshape(image.shape).float()

    assert pool(image).sum() == 5
    assert max(equivariance_error(pool, image, transform) for transform in SQUARE.values()) == 1


def test_rounding_breaks_no_ties():
    z = torch.rand(1, 1, 100, dtype=torch.float64).round(decimals=1)
    noisy = z + 1e-6 * torch.randn_like(z)
    assert torch.equal(DynamicPool(30)(z), DynamicPool(30)(noisy))
    assert torch.equal(DynamicPool(30)(z), DynamicPool(30)(z.float()))


# the layer has the right gradients


def test_gradients_pass_only_through_active_nodes():
    z = torch.rand(1, 2, 10, requires_grad=True)
    active = DynamicPool(4, "strict")(z)
    (z * active).sum().backward()
    assert torch.equal(z.grad, active.float())


# the layer is a well-behaved module


def test_all_nodes_of_a_constant_map_are_active():
    assert DynamicPool(3)(torch.full((1, 1, 10), 0.7)).all()
    assert DynamicPool(3)(torch.zeros(1, 1, 10)).all()


def test_repr_and_errors(without_shape_checks):
    assert repr(DynamicPool(5)) == "DynamicPool(5, ties='keep')"
    with pytest.raises(ValueError, match=r"num_active.*got 0"):
        DynamicPool(0)
    with pytest.raises(ValueError, match="'keep' or 'strict', got 'drop'"):
        DynamicPool(3, "drop")
    with pytest.raises(ValueError, match=r"tolerance.*\[0, 1\), got -1"):
        DynamicPool(3, tolerance=-1)
    for ties in ("keep", "strict"):
        check_ties(ties)
    with pytest.raises(ValueError, match="'keep' or 'strict', got 'drop'"):
        check_ties("drop")
