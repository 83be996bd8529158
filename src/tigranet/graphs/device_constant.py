"""A constant tensor in the dtype and on the device of any signal."""

import torch
from torch import Tensor


class DeviceConstant:
    """A constant tensor of a graph, with its copies in other dtypes and on other devices.

    Args:
        tensor: The constant, dense or sparse, float64 on the CPU.

    Attributes:
        tensor: The constant.

    Example:
        >>> half = DeviceConstant(torch.tensor([0.5], dtype=torch.float64))
        >>> half.like(torch.zeros(3))
        tensor([0.5000])
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._copies: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def like(self, y: Tensor) -> Tensor:
        """Convert the constant. Each conversion is computed once.

        Args:
            y: Tensor whose dtype and device are used.

        Returns:
            The constant in the dtype and on the device of ``y``.
        """
        key = (y.dtype, y.device)
        constant = self._copies.get(key)
        if constant is None:
            with torch.inference_mode(False):  # Later calls may record gradients, which inference tensors forbid.
                constant = self.tensor.to(dtype=y.dtype, device=y.device, copy=True)
            if not torch.compiler.is_compiling():
                self._copies[key] = constant
        return constant
