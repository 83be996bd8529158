"""Choose the device that a network runs on, from the name that a user gives."""

import re

import torch

from tigranet.choices import Accelerator


def select_device(name: str | torch.device = "auto") -> torch.device:
    """Return the device called ``name``, after checking that PyTorch can use it.

    Args:
        name: ``auto`` (a CUDA GPU if there is one, otherwise the CPU), ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.

    Returns:
        The device.

    Raises:
        ValueError: If the name is unknown, or if PyTorch cannot use that device on this machine.

    Example:
        >>> select_device("cpu")
        device(type='cpu')
    """
    name = str(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise ValueError(f"expected the device auto, cpu, cuda, cuda:N or mps, got {name!r}")
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count == 0:
            raise ValueError(f"PyTorch finds no CUDA GPU for the device {name!r}: use 'cpu' or 'auto'")
        if (device.index or 0) >= count:
            raise ValueError(f"the device {name!r} does not exist: PyTorch finds {count} GPUs, 0 to {count - 1}")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError("PyTorch finds no Apple GPU for the device 'mps': use 'cpu' or 'auto'")
    return device


def trains_on_cuda(accelerator: Accelerator = "auto") -> bool:
    """Return whether a training on this kind of device uses a CUDA GPU.

    Args:
        accelerator: ``auto``, ``cpu`` or ``gpu``.

    Returns:
        Whether PyTorch finds a CUDA GPU, and ``accelerator`` is not ``cpu``.

    Example:
        >>> trains_on_cuda("cpu")
        False
    """
    return accelerator != "cpu" and torch.cuda.is_available()


def select_accelerator(device: str | torch.device = "auto", accelerator: Accelerator = "auto") -> Accelerator:
    """Return the accelerator to train on, from a device and from a kind of accelerator.

    Args:
        device: The name of a device, see :func:`select_device`.
        accelerator: ``auto``, ``cpu`` or ``gpu``; it must not contradict ``device``.

    Returns:
        ``accelerator`` if the device is ``auto``, otherwise the kind of the device.

    Raises:
        ValueError: If the two contradict each other, if the device cannot be used, or if it is not the first GPU.

    Example:
        >>> select_accelerator("cpu"), select_accelerator("auto", "gpu")
        ('cpu', 'gpu')
    """
    if str(device) == "auto":
        return accelerator
    selected = select_device(device)
    kind: Accelerator = "cpu" if selected.type == "cpu" else "gpu"
    if accelerator not in ("auto", kind):
        raise ValueError(
            f"the device '{device}' and the accelerator '{accelerator}' contradict each other: give one of them"
        )
    if selected.index:
        raise ValueError(
            f"training uses the first GPU that is visible, got the device '{device}': "
            f"set CUDA_VISIBLE_DEVICES={selected.index} and use the device 'cuda'"
        )
    return kind
