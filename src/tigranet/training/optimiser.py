"""The optimiser of a training, and which parameters decay."""

from typing import Any

import torch
from torch import nn

from tigranet.training.recipe import Recipe


def create_optimiser(module: nn.Module, recipe: Recipe, fused: bool | None = None) -> torch.optim.Optimizer:
    r"""Return Adam, or AdamW if the recipe has a weight decay.

    AdamW multiplies the weights by :math:`1 - \eta \lambda` in each step, with the current learning rate :math:`\eta`
    and the weight decay :math:`\lambda`, independently of their gradients.

    Args:
        module: The network.
        recipe: The recipe.
        fused: Whether to update all parameters in one kernel. None lets PyTorch decide.

    Returns:
        The optimiser.
    """
    if not recipe.weight_decay:
        return torch.optim.Adam(module.parameters(), lr=recipe.learning_rate, fused=fused)
    return torch.optim.AdamW(parameter_groups(module, recipe.weight_decay), lr=recipe.learning_rate, fused=fused)


def parameter_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Divide the parameters of a network into those that decay and those that do not.

    Weights with at least two dimensions decay. Biases and the scales of normalisations do not, because they do not
    make a network more complex.

    Args:
        module: The network. A parameter whose name ends with ``bias`` is a bias, whatever its shape.
        weight_decay: The weight decay.

    Returns:
        Two groups of parameters for an optimiser of PyTorch. Every parameter is in one of them.

    Example:
        >>> decaying, others = parameter_groups(nn.Linear(3, 2), 0.1)
        >>> [tuple(parameter.shape) for parameter in decaying["params"]], decaying["weight_decay"]
        ([(2, 3)], 0.1)
        >>> [tuple(parameter.shape) for parameter in others["params"]], others["weight_decay"]
        ([(2,)], 0.0)
    """
    decaying: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in module.named_parameters():
        decays = parameter.ndim >= 2 and name.rpartition(".")[2] != "bias"
        (decaying if decays else others).append(parameter)
    return [{"params": decaying, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
