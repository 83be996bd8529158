"""Images made lighter and darker, with nothing moved in them."""

import torch
from jaxtyping import Float
from torch import Tensor


def tone(images: Float[Tensor, "batch maps height width"], strength: float) -> Float[Tensor, "batch maps height width"]:
    r"""Each image seen in its own random light: the value x becomes

    .. math:: e^{s a} \, x^{e^{s b}}, \qquad a, b \sim U[-1, 1],

    with ``strength`` s. The factor is the exposure, the exponent the tone curve; of a blurred edge the curve keeps more
    or less, so that strokes become thicker or thinner too. Each pixel is changed by itself: whether pixels are moved
    before or after, by a quarter turn or a whole number of them, is the same. Values below 0 are changed as their
    mirror images above.

    >>> _ = torch.manual_seed(0)
    >>> tone(torch.tensor([0.0, 0.5, 1.0]).reshape(1, 1, 1, 3), 0.5).flatten()
    tensor([0.0000, 0.4025, 0.9963])
    """
    draws = 2 * torch.rand(2, len(images), 1, 1, 1, device=images.device, dtype=images.dtype) - 1
    exposure, exponent = (strength * draws).exp()
    return exposure * images.sign() * images.abs() ** exponent
