"""What the paper reports, as data (accuracies in per cent)."""

from typing import NamedTuple


class Table2Row(NamedTuple):
    """One row of Table 2, MNIST-012, trained without rotated images."""

    train: float
    validation: float
    rotated: float
    rotated_std: float


TABLE_2 = {
    "ConvNet": Table2Row(100, 100, 55, 5),
    "STN": Table2Row(100, 98, 50, 5),
    "TIGraNet": Table2Row(98, 97, 94, 0.42),
}
