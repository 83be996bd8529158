"""Training, for any nn.Module: it knows nothing of graphs."""

from tigranet.training.fit import fit
from tigranet.training.recipe import Recipe

__all__ = ["Recipe", "fit"]
