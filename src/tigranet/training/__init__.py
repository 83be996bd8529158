"""Training of image classifiers: works with any ``nn.Module`` and knows nothing about graphs.

Names are imported when they are first used, because Lightning takes seconds to import and only training needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tigranet.choices import Log
    from tigranet.training.fit_network import fit
    from tigranet.training.hardware import Hardware
    from tigranet.training.lightning_module import Diverged
    from tigranet.training.process_state import is_first_process
    from tigranet.training.recipe import Recipe

__all__ = ["Diverged", "Hardware", "Log", "Recipe", "fit", "is_first_process"]

_MODULES = {
    "Diverged": "tigranet.training.lightning_module",
    "Hardware": "tigranet.training.hardware",
    "Log": "tigranet.choices",
    "Recipe": "tigranet.training.recipe",
    "fit": "tigranet.training.fit_network",
    "is_first_process": "tigranet.training.process_state",
}


def __getattr__(name: str) -> Any:
    """Import the module of a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module 'tigranet.training' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
