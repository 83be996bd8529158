"""Training, for any nn.Module: it knows nothing of graphs."""

from tigranet.training.fit import Log, fit
from tigranet.training.hardware import Hardware
from tigranet.training.process import is_first_process
from tigranet.training.recipe import Recipe
from tigranet.training.task import Diverged

__all__ = ["Diverged", "Hardware", "Log", "Recipe", "fit", "is_first_process"]
