"""Each field of a recipe applies its own function, and a field that is not set draws no random numbers."""

import pytest
import torch

from tigranet.data.augment.blur import blur
from tigranet.data.augment.cutout import cutout
from tigranet.data.augment.photometric import tint, tone
from tigranet.data.augment.rigid import jitter, mirror, random_shift
from tigranet.training import Recipe
from tigranet.training.augmentation import augment

CHANGES = {
    "flip": (True, lambda images: mirror(images)),
    "shift": (0.2, lambda images: random_shift(images, 0.2)),
    "jitter": (0.4, lambda images: jitter(images, 0.4)),
    "blur": (0.8, lambda images: blur(images, 0.8)),
    "tone": (0.5, lambda images: tone(images, 0.5)),
    "tint": (0.1, lambda images: tint(images, 0.1)),
    "cutout": (0.3, lambda images: cutout(images, 0.3)),
}
ALL = {name: value for name, (value, _) in CHANGES.items()} | {
    "zoom": 0.2,
    "stretch": 0.1,
    "warp": 0.03,
    "as_is": 0.25,
    "turned": True,
}


def recipe(**fields):
    return Recipe(**({"epochs": 1, "jitter": 0.0} | fields))


@pytest.mark.parametrize("name", CHANGES)
def test_a_field_applies_its_function_with_the_same_random_numbers(name):
    value, change = CHANGES[name]
    images = torch.rand(8, 3, 9, 12)
    torch.manual_seed(1)
    expected = change(images)
    torch.manual_seed(1)
    assert torch.equal(augment(images, recipe(**{name: value})), expected)
    assert not torch.equal(expected, images)


def test_without_changes_no_random_number_is_drawn():
    images, state = torch.rand(4, 1, 5, 5), torch.get_rng_state()
    assert augment(images, recipe()) is images
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 9, 9), (3, 7, 12), (1, 2, 3)])
def test_all_changes_together_give_other_finite_images_that_depend_on_the_seed_alone(shape, dtype):
    images = torch.rand(6, *shape, dtype=dtype)
    torch.manual_seed(1)
    first, second = (augment(images, recipe(**ALL)) for _ in range(2))
    torch.manual_seed(1)
    assert torch.equal(augment(images, recipe(**ALL)), first)
    assert not torch.equal(first, second)
    assert first.isfinite().all()
    assert (first.shape, first.dtype) == (images.shape, dtype)


def test_no_value_is_read_and_no_shape_depends_on_values():
    """A tensor of the device ``meta`` has no values. A CUDA graph has the same restrictions."""
    images = torch.rand(6, 3, 9, 12, device="meta")
    assert augment(images, recipe(**ALL)).shape == images.shape


def test_blank_images_stay_blank():
    """Without a tint, which changes their colour."""
    images = torch.full((6, 3, 9, 12), 0.3)
    fields = ALL | {"tint": 0.0, "tone": 0.0}
    torch.testing.assert_close(augment(images, recipe(**fields)), images, rtol=1e-6, atol=0)
