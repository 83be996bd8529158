"""Start a training from a saved network instead of random weights."""

from pathlib import Path

from tigranet.architecture import Architecture
from tigranet.choices import Boundary, WindowOption
from tigranet.model import TIGraNet


def load_start(
    name: str | Path,
    architecture: Architecture | None = None,
    boundary: Boundary = "free",
    window: WindowOption = "auto",
    margin: int = 0,
) -> TIGraNet:
    """Load the network that a training starts from, and check that the other options do not contradict it.

    Args:
        name: The folder of a saved network, the name of a shipped one, or ``owner/name`` on the Hugging Face Hub.
        architecture: The architecture that the user asks for, if any.
        boundary: The boundary that the user asks for; the default leaves it to the network.
        window: The window that the user asks for; ``auto`` leaves it to the network.
        margin: The margin that the user asks for; 0 leaves it to the network.

    Returns:
        The network.

    Raises:
        FileNotFoundError: If there is no such network.
        ValueError: If an option differs from the network.
    """
    network = TIGraNet.from_pretrained(name)
    requested = (
        ("architecture", architecture, None, network.architecture),
        ("boundary", boundary, "free", network.boundary),
        ("window", window, "auto", network.window),
        ("margin", margin, 0, network.margin),
    )
    for option, value, default, actual in requested:
        if value not in (default, actual):
            raise ValueError(
                f"expected the {option} of '{name}', {actual}, or none at all, got {value}: a training that starts "
                f"from a network keeps its {option}"
            )
    return network
