"""The window that fades out the corners of the images, chosen from the training images and the network."""

from typing import NamedTuple, get_args

from jaxtyping import Float
from torch import Tensor

from tigranet.architecture import Architecture
from tigranet.choices import Window, WindowOption
from tigranet.data.frame_filling import examine_frames


class WindowChoice(NamedTuple):
    """A window, and a sentence for the user."""

    window: Window
    """``disc`` or ``none``."""
    reason: str
    """What was chosen, and why."""


def choose_window(
    option: WindowOption, architecture: Architecture, images: Float[Tensor, "count maps height width"]
) -> WindowChoice:
    """Choose the window of a new network.

    When an image that fills its frame is rotated, its corners leave the frame and other content enters. A window that
    is 1 inside a disc and falls to 0 at its border removes the corners, in training and in use, so that the network
    sees the same part of the scene at every angle. Images on a plain background need no window.

    ``auto`` chooses the disc if more than half of the training images fill their frame (see
    :func:`~tigranet.data.frame_filling.examine_frames`) and the network has group convolutions. Other networks have
    always been measured without a window, and keep their results.

    Args:
        option: ``auto``, or the window that the user asks for.
        architecture: The network.
        images: The training images.

    Returns:
        The window, and the reason.

    Raises:
        ValueError: If ``option`` is not one of the three.
    """
    if option not in get_args(WindowOption):
        raise ValueError(f"expected window to be {', '.join(map(repr, get_args(WindowOption)))}, got {option!r}")
    if option == "disc":
        return WindowChoice("disc", "window: disc, as requested; the corners of the images are not used")
    if option == "none":
        return WindowChoice("none", "window: none, as requested; the whole images are used")
    frames = examine_frames(images)
    count = f"{frames.filling} of {frames.examined} examined training images fill their frame"
    if not frames.is_typical:
        return WindowChoice(
            "none",
            f"window: none; the whole images are used, because only {count} (--window disc leaves out the corners)",
        )
    reason = f"{count}, and a rotation moves their corners out of it"
    if not architecture.has_group_convolutions:
        return WindowChoice(
            "none",
            f"window: none, the default of this network; but {reason} (--window disc leaves out the corners)",
        )
    return WindowChoice(
        "disc", f"window: disc; the corners of the images are not used, because {reason} (--window none uses them)"
    )
