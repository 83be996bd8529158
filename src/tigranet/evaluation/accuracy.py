"""How often a network is right, upright and moved."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tigranet.data.augment.rigid import Interpolation, Isometry
from tigranet.data.dataset import LabelledImages

ENOUGH = 1000
"""Moved images are drawn anew until there are as many as this, at most ten times."""
AT_ONCE = {"cpu": 256, "elsewhere": 2048}
"""Images a batch: few where a cache is to hold them, many where each batch costs a launch."""


class Accuracy(NamedTuple):
    """Mean and standard deviation, in per cent, over draws of how the images are moved."""

    mean: float
    std: float
    draws: int

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f}" if self.draws > 1 else f"{self.mean:.1f}"


def device_of(module: nn.Module) -> torch.device:
    """Where a module is."""
    return next((tensor.device for tensor in (*module.parameters(), *module.buffers())), torch.device("cpu"))


@torch.inference_mode()
def predict(module: nn.Module, images: Tensor, batch_size: int | None = None) -> Tensor:
    """The class of each image, computed where the module is, in evaluation mode."""
    device = device_of(module)
    training = module.training
    try:
        module.eval()
        size = batch_size or AT_ONCE["cpu" if device.type == "cpu" else "elsewhere"]
        return torch.cat([module(batch.to(device)).argmax(1) for batch in images.split(size)]).cpu()
    finally:
        module.train(training)


def accuracy(module: nn.Module, data: LabelledImages) -> float:
    """The part of the images whose class is right, in per cent."""
    return 100 * float((predict(module, data.images) == data.labels).double().mean())


def moved_accuracy(
    module: nn.Module, data: LabelledImages, moved: Isometry, seed: int = 0, interpolation: Interpolation = "bilinear"
) -> Accuracy:
    """The accuracy with every image moved by itself, over draws by ``seed``."""
    generator = torch.Generator().manual_seed(seed)
    draws = min(10, -(-ENOUGH // len(data.labels))) if moved.rotated or moved.max_shift else 1
    images = data.images.to(device_of(module))  # they are moved there as well
    seen = torch.tensor(
        [accuracy(module, data._replace(images=moved(images, generator, interpolation))) for _ in range(draws)],
        dtype=torch.float64,
    )
    return Accuracy(float(seen.mean()), float(seen.std(correction=0)), draws)
