"""The random changes of the training images of one batch, in the order in which a recipe applies them."""

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.augment.blur import blur
from tigranet.data.augment.cutout import cutout
from tigranet.data.augment.deform import deform
from tigranet.data.augment.photometric import tint, tone
from tigranet.data.augment.rigid import jitter, mirror, random_shift, rotate
from tigranet.training.recipe import Recipe


def augment(
    images: Float[Tensor, "batch maps height width"], recipe: Recipe
) -> Float[Tensor, "batch maps height width"]:
    """Move, deform, blur, recolour and cut out the images of a batch, as the recipe says.

    Movements by whole pixels come first, because they do not interpolate. The random numbers come from the default
    generator of the device of the images. Nothing waits for the device, and no shape depends on values, so a CUDA graph
    can record it. A change that the recipe does not use draws no random numbers.

    Args:
        images: The images.
        recipe: The recipe.

    Returns:
        The changed images, of the same size.
    """
    if recipe.flip:
        images = mirror(images)
    if recipe.shift:
        images = random_shift(images, recipe.shift)
    if recipe.turned:
        images = rotate(images, 360 * torch.rand(len(images), device=images.device), padding="background")
    if recipe.deformed:
        images = _deform(images, recipe)
    elif recipe.jitter:
        images = jitter(images, recipe.jitter)
    if recipe.blur:
        images = blur(images, recipe.blur)
    if recipe.tone:
        images = tone(images, recipe.tone)
    if recipe.tint:
        images = tint(images, recipe.tint)
    return cutout(images, recipe.cutout) if recipe.cutout else images


def _deform(images: Tensor, recipe: Recipe) -> Tensor:
    """Deform the images, except for a random fraction ``as_is`` of them."""
    deformed = deform(images, recipe.jitter, recipe.zoom, recipe.stretch, recipe.warp)
    if not recipe.as_is:
        return deformed
    return torch.where(torch.rand(len(images), 1, 1, 1, device=images.device) < recipe.as_is, images, deformed)
