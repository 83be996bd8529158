"""Random changes of brightness, contrast and colour that move no pixel."""

import torch
from jaxtyping import Float
from torch import Tensor


def tone(images: Float[Tensor, "batch maps height width"], strength: float) -> Float[Tensor, "batch maps height width"]:
    r"""Change exposure and contrast of each image at random.

    The value x becomes

    .. math:: e^{s a} \, x^{e^{s b}}, \qquad a, b \sim U[-1, 1],

    with ``strength`` s. The factor is the exposure and the exponent is the tone curve. On a blurred edge the curve
    moves the apparent outline, so that strokes become thicker or thinner. Each pixel changes independently of the
    others, so the transform commutes with quarter turns and with shifts by whole pixels. A negative value changes like
    its absolute value and keeps its sign.

    Args:
        images: The images. Each has its own random a and b.
        strength: Maximum absolute value of the logarithm of exposure and exponent.

    Returns:
        The changed images.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> tone(torch.tensor([0.0, 0.5, 1.0]).reshape(1, 1, 1, 3), 0.5).flatten()
        tensor([0.0000, 0.4025, 0.9963])
    """
    uniform = 2 * torch.rand(2, len(images), 1, 1, 1, device=images.device, dtype=images.dtype) - 1
    exposure, exponent = (strength * uniform).exp()
    return exposure * images.sign() * images.abs() ** exponent


def tint(images: Float[Tensor, "batch maps height width"], strength: float) -> Float[Tensor, "batch maps height width"]:
    r"""Add a random number to each channel of each image.

    The value x in channel c becomes

    .. math:: x + s \, a_c, \qquad a_c \sim U[-1, 1],

    with ``strength`` s. In contrast to :func:`tone`, which changes all channels alike and keeps black, it changes the
    colour of an image and the brightness of its background.

    Args:
        images: The images. Each channel of each image has its own random number.
        strength: Maximum change of the values.

    Returns:
        The changed images.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> tint(torch.zeros(1, 3, 1, 2), 0.1).squeeze()
        tensor([[-0.0007, -0.0007],
                [ 0.0536,  0.0536],
                [-0.0823, -0.0823]])
    """
    uniform = 2 * torch.rand(*images.shape[:2], 1, 1, device=images.device, dtype=images.dtype) - 1
    return images + strength * uniform
