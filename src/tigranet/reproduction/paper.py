"""What the paper's tables print for TIGraNet. For MNIST-012 its text and its table differ: the table (reading 15)."""

from dataclasses import dataclass

from tigranet.reproduction.tables import TABLES


@dataclass(frozen=True)
class Reported:
    """Accuracies in per cent as printed there; '-' where it prints none."""

    table: str
    train: str = "-"
    validation: str = "-"
    test: str = "-"
    moved: str = "-"


REPORTED = {
    row.data: Reported(name.replace("table", "Table "), **dict(zip(table.columns, row.reported, strict=False)))
    for name, table in TABLES.items()
    for row in table.rows
    if row.method == "TIGraNet" and row.reported
}
"""By data set; each with the network that is the preset of its table."""
