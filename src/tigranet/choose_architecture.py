"""The architecture to train when the user names none, and the size of the images that suits an architecture."""

import math
from difflib import get_close_matches
from typing import NamedTuple

from tigranet.architecture import PRESETS, Architecture
from tigranet.data.letterbox import MAX_DEFAULT_SIZE, SizeLimit

FAST, ACCURATE = "fast", "accurate"
"""Names that a user may give in place of a preset: the default on a CPU, and the default on a GPU."""


def named_default(architecture: object) -> str | None:
    """Return :data:`FAST` or :data:`ACCURATE` if the user asks for it.

    Args:
        architecture: What the user asks for.

    Returns:
        The name. None for anything else, such as a preset or layers.

    Raises:
        ValueError: If it is a text that resembles one of the two names, and no preset.

    Example:
        >>> named_default("fast"), named_default("pyramid"), named_default(None)
        ('fast', None, None)
    """
    if not isinstance(architecture, str) or architecture in PRESETS:
        return None
    names = get_close_matches(architecture, (FAST, ACCURATE), n=1)
    if names and architecture != names[0]:
        raise ValueError(
            f"expected '{FAST}', '{ACCURATE}', a preset or layers, got '{architecture}': did you mean '{names[0]}'?"
        )
    return names[0] if names else None


class PresetRange(NamedTuple):
    """A preset, and the data that it is the default for."""

    preset: str
    """Name of the preset."""
    max_images: float = math.inf
    """Largest number of training images."""
    max_side: float = math.inf
    """Largest side length of the images in pixels."""


MEDIUM = "pyramid-medium"
"""Between the defaults on a CPU and those on a GPU, in accuracy and time."""
CPU_PRESETS = (
    PresetRange("oriented-small", max_side=7),  # too small to be coarsened twice
    PresetRange("pyramid-tiny", max_images=500, max_side=40),
    PresetRange(MEDIUM, max_side=40),
    PresetRange("pyramid-small", max_images=1_000, max_side=64),
    PresetRange(MEDIUM, max_side=64),
    PresetRange("pyramid-small-224"),
)
"""The defaults on a CPU: the most accurate networks that learn from some hundred images in a minute or two, and from
thousands of images of up to 64 pixels in minutes to hours. The default is the first row whose two limits are kept. The
last row has no limits."""
GPU_PRESETS = (
    PresetRange("oriented-small", max_side=7),
    PresetRange("pyramid-large", max_side=40),
    PresetRange("pyramid-large", max_images=10_000, max_side=64),
    PresetRange("pyramid", max_side=64),  # as accurate with many images, in about half the time
    PresetRange("pyramid-224"),
)
"""The defaults on a GPU. These networks are more accurate, and take much longer on a CPU."""
CPU_EPOCHS = 0.5
"""Share of the default number of epochs for which they are trained on a CPU, from a trained network or on more than
:data:`ALL_EPOCHS_IMAGES` images. In ``results/presets.md``, all epochs are at most one point better then."""
ALL_EPOCHS_IMAGES = 1_000
"""Number of images up to which a training from random weights has all epochs. It is short, compared with others."""


class SizeRange(NamedTuple):
    """A side length, and the number of images that it is the limit for."""

    side: int
    """Largest side length in pixels."""
    max_images: float = math.inf
    """Largest number of images."""


CPU_SIZES = (SizeRange(224, max_images=600), SizeRange(128, max_images=2_000), SizeRange(64))
"""Limits of the side length on a CPU: images as large as a network can be trained on in some minutes."""
GPU_SIZES = (SizeRange(224, max_images=10_000), SizeRange(128, max_images=30_000), SizeRange(64))
"""Limits of the side length on a GPU: images as large as fit into a few gigabytes of memory."""
LARGE_IMAGE_COARSENINGS = 3
"""Number of coarsenings of a network that is suited to images of more than 64 pixels."""


def choose_preset(train_images: int, image_side: int, gpu: bool) -> str:
    """Return the name of the preset to train when the user names no architecture.

    ``results/README.md`` has the accuracies and the times that the choice is based on.

    Args:
        train_images: The number of training images.
        image_side: The longer side of the images in pixels.
        gpu: Whether the network is trained on a GPU.

    Returns:
        The preset of the first row of :data:`CPU_PRESETS` or :data:`GPU_PRESETS` whose limits are kept.

    Example:
        >>> choose_preset(300, 28, gpu=False), choose_preset(300, 64, gpu=False), choose_preset(300, 64, gpu=True)
        ('pyramid-tiny', 'pyramid-small', 'pyramid-large')
    """
    rows = GPU_PRESETS if gpu else CPU_PRESETS
    return next(row.preset for row in rows if train_images <= row.max_images and image_side <= row.max_side)


def epochs_share(train_images: int, image_side: int, accurate: bool, gpu: bool, from_random: bool) -> float:
    """Return the share of the default number of epochs for which a default network is trained.

    Args:
        train_images: The number of training images.
        image_side: The longer side of the images in pixels.
        accurate: Whether the network is the default on a GPU.
        gpu: Whether it is trained on a GPU.
        from_random: Whether the training starts from random weights.

    Returns:
        :data:`CPU_EPOCHS` for an accurate network on a CPU, if it is another one than the default there, and starts
        from a trained network or has more than :data:`ALL_EPOCHS_IMAGES` images. 1 for all others.

    Example:
        >>> options = {"accurate": True, "gpu": False}
        >>> epochs_share(300, 64, **options, from_random=False), epochs_share(300, 64, **options, from_random=True)
        (0.5, 1.0)
    """
    presets = {choose_preset(train_images, image_side, on_gpu) for on_gpu in (False, True)}
    is_slow = accurate and not gpu and len(presets) > 1
    return CPU_EPOCHS if is_slow and not (from_random and train_images <= ALL_EPOCHS_IMAGES) else 1.0


def faster_preset(train_images: int, image_side: int) -> str:
    """Return the preset to suggest to a user who finds the default on a CPU too slow.

    Args:
        train_images: The number of training images.
        image_side: The longer side of the images in pixels.

    Returns:
        The default for few images of the same size. An empty string if that is the default for these images, too.

    Example:
        >>> faster_preset(5_000, 28), faster_preset(300, 28)
        ('pyramid-tiny', '')
    """
    for_few = choose_preset(1, image_side, gpu=False)
    return "" if for_few == choose_preset(train_images, image_side, gpu=False) else for_few


def default_size_limit(architecture: Architecture | None, gpu: bool) -> SizeLimit:
    """Return the largest side length to which a user's images are scaled when the user gives no size.

    Args:
        architecture: The architecture that the user names, or None if it is chosen after the images are loaded.
        gpu: Whether the network is trained on a GPU.

    Returns:
        For a named architecture with fewer than :data:`LARGE_IMAGE_COARSENINGS` coarsenings
        :data:`~tigranet.data.letterbox.MAX_DEFAULT_SIZE`, because its time and memory grow with every pixel. Otherwise
        the limit depends on the number of images, by the first row of :data:`CPU_SIZES` or :data:`GPU_SIZES` that has
        as many.

    Example:
        >>> default_size_limit(Architecture.parse("oriented"), gpu=False)
        64
        >>> limit = default_size_limit(None, gpu=False)
        >>> limit(300), limit(1_000), limit(10_000)
        (224, 128, 64)
    """
    if architecture is not None and architecture.num_coarsenings < LARGE_IMAGE_COARSENINGS:
        return MAX_DEFAULT_SIZE
    rows = GPU_SIZES if gpu else CPU_SIZES
    return lambda images: next(row.side for row in rows if images <= row.max_images)
