r"""Choose images to label next: those whose labels a linear last layer would learn most from, and no two alike.

If an image with the representation h, the class probabilities p and the most probable class y had the label y, the
gradient of the cross-entropy with respect to the weights of the last layer would be

.. math:: g = (p - e_y) \otimes h.

Its length is large where the network is uncertain, and its direction says what the network would learn. The images are
drawn by k-means++ in the space of these gradients: each new image with a probability in proportion to its squared
distance from the nearest image that is already chosen, or from zero. An image of which the network is certain has a
gradient near zero, and an image that is like a chosen one is near it, so neither is drawn. (Ash et al., Deep Batch
Active Learning by Diverse, Uncertain Gradient Lower Bounds, ICLR 2020.)
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

MIN_DISTANCE = 1e-12
"""Squared distances, as a fraction of the largest squared length, below which two gradients count as equal."""


def margin_uncertainty(probabilities: Float[np.ndarray, "images classes"]) -> Float[np.ndarray, " images"]:
    """Return how uncertain predictions are: 1 minus the difference of the two largest probabilities.

    Args:
        probabilities: Probabilities of the classes.

    Returns:
        Numbers from 0 (certain) to 1 (two classes are equally probable).

    Example:
        >>> margin_uncertainty(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.25, 0.25]]))
        array([0.  , 1.  , 0.75])
    """
    if probabilities.shape[1] < 2:
        return 1 - probabilities[:, 0]
    largest = np.sort(probabilities, axis=1)[:, -2:]
    return 1 - (largest[:, 1] - largest[:, 0])


def select_images(
    probabilities: Float[np.ndarray, "images classes"],
    representations: Float[np.ndarray, "images units"],
    count: int,
    seed: int = 0,
    step: Callable[[], None] = lambda: None,
) -> list[int]:
    """Choose images that a classifier is uncertain about and that differ from each other.

    The gradients themselves, which have classes times units entries, are never computed: the inner product of two of
    them is the product of two inner products.

    Args:
        probabilities: Probabilities of the classes.
        representations: Input of the last layer.
        count: Number of images to choose.
        seed: Seed of the draws. The result depends on the order of the images only through the draws, so the caller
            brings them to an order that does not depend on where they are from.
        step: Called after each image that is chosen.

    Returns:
        Positions of the chosen images in the order in which they were chosen, the first being the one with the longest
        gradient. If there are not more than ``count`` images, all of them.
    """
    total = len(probabilities)
    errors = probabilities - np.eye(probabilities.shape[1])[probabilities.argmax(1)]
    lengths = (errors**2).sum(1) * (representations.astype(np.float64) ** 2).sum(1)
    uncertainty = margin_uncertainty(probabilities)
    threshold = MIN_DISTANCE * lengths.max(initial=0.0)
    draws = np.random.default_rng(seed).random(min(count, total))
    is_left, distances = np.ones(total, dtype=bool), lengths.copy()
    chosen: list[int] = []
    for draw in draws:
        candidates = np.where(is_left & (distances > threshold), distances, 0.0)
        if not candidates.any():  # every image left is like a chosen one
            position = int(np.where(is_left, uncertainty, -1.0).argmax())
        elif not chosen:
            position = int(candidates.argmax())
        else:
            sums = candidates.cumsum()
            position = min(int(np.searchsorted(sums, draw * sums[-1], side="right")), total - 1)
        chosen.append(position)
        is_left[position] = False
        products = (errors @ errors[position]) * (representations @ representations[position]).astype(np.float64)
        distances = np.minimum(distances, np.maximum(lengths + lengths[position] - 2 * products, 0.0))
        step()
    return chosen
