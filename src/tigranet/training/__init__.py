"""Training of image classifiers: works with any ``nn.Module`` and knows nothing about graphs."""

from tigranet.training.fit import Log, fit
from tigranet.training.hardware import Hardware
from tigranet.training.lightning_module import Diverged
from tigranet.training.process_state import is_first_process
from tigranet.training.recipe import Recipe

__all__ = ["Diverged", "Hardware", "Log", "Recipe", "fit", "is_first_process"]
