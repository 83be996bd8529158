"""The precision in which a trained network computes its graph layers."""

from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.architecture import Architecture
from tigranet.canonical_rotation import canonical_rotation
from tigranet.choices import InferencePrecision
from tigranet.half_precision import HALF_TYPES, computes_with
from tigranet.model_limits import check_choice

N = TypeVar("N", bound="InferenceInHalfPrecision")


class InferenceInHalfPrecision(nn.Module):
    """A network whose graph layers can compute with numbers of 16 bits in evaluation mode.

    Factors of matrix products and convolutions are rounded, and their sums. Weights, statistics and the classifier stay
    in the precision of the network.

    Sums of the same numbers in another order have other rounding errors, and layer after layer they grow to those of
    half precision. So each image is brought to its canonical rotation first: an image and its quarter turns have the
    same answer, as without rounding.
    """

    architecture: Architecture
    _half_type: torch.dtype | None = None

    def compute_in(self: N, precision: InferencePrecision) -> N:
        """Choose the precision of the graph layers in evaluation mode. It is not saved with the network.

        On a GPU, half precision makes group convolutions faster and halves their memory. On a CPU it gains nothing:
        our kernels compute in single precision, in less time than PyTorch's convolutions take in half precision.

        Args:
            precision: ``32`` is the precision of the weights. ``bf16`` and ``16`` are bfloat16 and float16. ``auto`` is
                bf16 for networks with group convolutions on GPUs that compute with it, and 32 for all others.

        Returns:
            The network itself.

        Raises:
            ValueError: If the precision is unknown, or if the device of the network does not compute with it.

        Example:
            >>> from tigranet import TIGraNet
            >>> net = TIGraNet("paper-small", num_classes=3).eval().compute_in("auto")
        """
        check_choice("precision", precision, InferencePrecision)
        device = next(self.parameters()).device
        if precision == "auto":
            is_faster = device.type == "cuda" and self.architecture.has_group_convolutions
            self._half_type = torch.bfloat16 if is_faster and computes_with(device, torch.bfloat16) else None
        elif precision in HALF_TYPES and not computes_with(device, HALF_TYPES[precision]):
            raise ValueError(
                f"this {device.type.upper()} does not compute in precision {precision}, and would take longer than in "
                "32: use 'auto' or '32'"
            )
        else:
            self._half_type = HALF_TYPES.get(precision)
        return self

    def _inference_precision(self, device: torch.device) -> AbstractContextManager[object]:
        """Return the block within which a graph layer is computed."""
        if self.training or self._half_type is None:
            return nullcontext()
        return torch.autocast(device.type, self._half_type)

    def _exactly_rotated(self, images: Float[Tensor, "*shape"]) -> Float[Tensor, "*rotated_shape"]:
        """Return images in half precision in their canonical rotation, and others as they are."""
        if self.training or self._half_type is None or images.ndim != 4:
            return images
        return canonical_rotation(images).images
