"""What the paper reports for TIGraNet, as data. For MNIST-012 its text and its table differ: the table (reading 15)."""

from dataclasses import dataclass

from tigranet.architecture import PRESETS


@dataclass(frozen=True)
class Reported:
    """Accuracies in per cent as printed there; '-' where it prints none."""

    table: str
    train: str = "-"
    validation: str = "-"
    test: str = "-"
    moved: str = "-"


REPORTED = {
    ("mnist-012", PRESETS["paper-small"]): Reported("Table 2", train="98", validation="97", moved="94 ± 0.42"),
    ("mnist-rot", PRESETS["paper"]): Reported("Table 3", moved="83.8"),
    ("mnist-trans", PRESETS["paper"]): Reported("Table 3", moved="79.6"),
    ("eth80", PRESETS["paper"]): Reported("Table 4", test="95.1"),
}
"""By data set and architecture."""
