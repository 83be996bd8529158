"""Checks that a tensor is a signal on a graph, or a set of its nodes."""

import torch
from torch import Tensor


def check_signal(y: Tensor, num_nodes: int, reader: object) -> None:
    """Check that a tensor holds signals on a graph.

    Args:
        y: The tensor.
        num_nodes: Number of nodes of the graph.
        reader: The object that reads ``y``, named in the error.

    Raises:
        ValueError: If the last axis of ``y`` does not have one value per node.
        TypeError: If ``y`` is neither float32 nor float64.
    """
    _check_last_axis(y, num_nodes, reader)
    if y.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"expected a signal in float32 or float64, got {y.dtype}: convert it with .float(), or use autocast"
        )


def check_node_set(omega: Tensor, num_nodes: int, reader: object) -> None:
    """Check that a tensor holds sets of nodes of a graph.

    Args:
        omega: The tensor.
        num_nodes: Number of nodes of the graph.
        reader: The object that reads ``omega``, named in the error.

    Raises:
        ValueError: If the last axis of ``omega`` does not have one value per node.
        TypeError: If ``omega`` is not boolean.
    """
    _check_last_axis(omega, num_nodes, reader)
    if omega.dtype != torch.bool:
        raise TypeError(f"expected a set of nodes as booleans, true for its nodes, got {omega.dtype}")


def _check_last_axis(values: Tensor, num_nodes: int, reader: object) -> None:
    if values.ndim == 0 or values.shape[-1] != num_nodes:
        raise ValueError(f"{reader!r} reads {num_nodes} values in the last axis, got shape {tuple(values.shape)}")
