"""The default architecture for a number of training images."""

from tigranet.architecture import Architecture

MAX_IMAGES_FOR_SMALL_NETWORK = 10_000
"""With more training images than this, a network with more parameters is more accurate."""


def choose_architecture(train_images: int) -> Architecture:
    """Return the architecture to train when the user names none.

    Args:
        train_images: The number of training images.

    Returns:
        The preset ``oriented-small``, or ``oriented`` for more than 10,000 images.

    Example:
        >>> choose_architecture(10_000) == Architecture.parse("oriented-small")
        True
        >>> choose_architecture(10_001) == Architecture.parse("oriented")
        True
    """
    return Architecture.parse("oriented" if train_images > MAX_IMAGES_FOR_SMALL_NETWORK else "oriented-small")
