"""Provenance of measurements: software versions and hardware."""

import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from tigranet import __version__


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python, and of the libraries that affect its numbers.

    Returns:
        Versions by name.
    """
    return {
        "tigranet": __version__,
        "torch": torch.__version__,
        "numpy": version("numpy"),
        "python": platform.python_version(),
    }


def machine() -> dict[str, Any]:
    """Describe the machine.

    Returns:
        The name of the processor, the number of threads of PyTorch, and the name of the GPU or None.
    """
    cpuinfo = Path("/proc/cpuinfo")
    model_name = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"cpu": model_name[1] if model_name else platform.machine(), "threads": torch.get_num_threads(), "gpu": gpu}
