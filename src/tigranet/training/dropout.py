"""The dropout of a network while it is trained."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def dropout_during_training(module: nn.Module, probability: float) -> Iterator[None]:
    """Set the dropout probability of a network within the block, and restore it afterwards.

    Args:
        module: The network. Its attribute ``dropout`` is an ``nn.Dropout``.
        probability: The probability. 0 leaves the network as it is.

    Raises:
        ValueError: If the probability is not 0 and the network has no such attribute.

    Example:
        >>> module = nn.Module()
        >>> module.dropout = nn.Dropout(0.0)
        >>> with dropout_during_training(module, 0.3):
        ...     print(module.dropout.p)
        0.3
        >>> module.dropout.p
        0.0
    """
    if not probability:
        yield
        return
    dropout = getattr(module, "dropout", None)
    if not isinstance(dropout, nn.Dropout):
        raise ValueError(
            f"dropout is {probability:g}, but {type(module).__name__} has no attribute 'dropout' of type nn.Dropout: "
            "use dropout=0, or add one to the network"
        )
    previous = dropout.p
    dropout.p = probability
    try:
        yield
    finally:
        dropout.p = previous
