"""The accuracies that the paper reports for TIGraNet, by data set."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PaperResult:
    """Accuracies in per cent as the paper prints them; '-' where it prints none."""

    table: str
    """The table of the paper."""
    train: str = "-"
    """On the training images."""
    validation: str = "-"
    """On the validation images."""
    test: str = "-"
    """On the test images as they are."""
    moved: str = "-"
    """On the test images rotated or shifted."""


PAPER_RESULTS = {
    "mnist-012": PaperResult("Table 2", train="98", validation="97", moved="94 ± 0.42"),
    "mnist-rot": PaperResult("Table 3", moved="83.8"),
    "mnist-trans": PaperResult("Table 3", moved="79.6"),
    "eth80": PaperResult("Table 4", test="95.1"),
}
"""By name of the data set. Each is the result of the preset network of its table. For MNIST-012 the text and the table
of the paper differ; these are the numbers of the table (reading 15)."""
