"""The confidence intervals below the tables of ``tigranet train`` and ``tigranet evaluate``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tigranet.evaluation import Robustness

SHOWN_MOVEMENT = "rotated"
"""The movement whose interval is printed, beside that of unmoved images; JSON has those of all movements."""


def print_intervals(robustness: "Robustness") -> None:
    """Print the accuracy on test images as they are and rotated, each with its interval.

    Args:
        robustness: The accuracies.
    """
    print(f"{robustness.unmoved}: {robustness.upright:.1f} %, {robustness.interval()}")
    if SHOWN_MOVEMENT in robustness.moved:
        accuracy = robustness.moved[SHOWN_MOVEMENT].mean
        print(f"{SHOWN_MOVEMENT}: {accuracy:.1f} %, {robustness.interval(SHOWN_MOVEMENT)}")
