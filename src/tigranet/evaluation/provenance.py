"""What something was measured with: versions and machine."""

import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from tigranet import __version__


def versions() -> dict[str, str]:
    """Of this package, and of what its numbers depend on."""
    return {
        "tigranet": __version__,
        "torch": torch.__version__,
        "numpy": version("numpy"),
        "python": platform.python_version(),
    }


def machine() -> dict[str, Any]:
    """The processor, how many threads are used, and the GPU if there is one."""
    about = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", about.read_text()) if about.exists() else None
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"cpu": named[1] if named else platform.machine(), "threads": torch.get_num_threads(), "gpu": gpu}
