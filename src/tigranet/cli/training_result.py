"""What ``tigranet train`` prints at its end."""

from typing import TYPE_CHECKING

from rich.table import Table

from tigranet.cli.accuracy_intervals import print_intervals
from tigranet.cli.output import print_line, print_table

if TYPE_CHECKING:
    from tigranet.workflows.trained_model import TrainedModel


def print_training_result(trained: "TrainedModel") -> None:
    """Print the accuracies beside those of the paper, if it has any for this data set.

    Args:
        trained: The result of the training.
    """
    result, paper, motion = trained.result, trained.paper, trained.data.test_motion
    validation = "-" if result.validation is None else f"{result.validation:.1f}"
    rows = [
        ["training images", f"{result.train:.1f}", paper.train if paper else ""],
        ["validation images", validation, paper.validation if paper else ""],
    ]
    if result.test is None:
        rows.append(["test images", "no test images", ""])
    else:
        rows.append(
            [
                f"test images, {trained.data.orientation or trained.data.unmoved}",
                f"{result.test:.1f}",
                paper.test if paper else "",
            ]
        )
        if motion.rotated or motion.max_shift:
            rows.append([f"test images, {result.how}", str(result.moved), paper.moved if paper else ""])
        if motion.rotated:
            rows.append(["same, pixels not interpolated", str(result.nearest), "-"])
    table = Table("accuracy, %", "measured", *([f"paper, {paper.table}"] if paper else []))
    for row in rows:
        table.add_row(*row[: len(table.columns)])
    print(f"{result.architecture}, {result.parameters:,} parameters, trained in {result.seconds:.0f} s")
    if trained.larger is not None:
        print(trained.larger)
    if trained.comparison is not None:
        print(trained.comparison)
    print_table(table)
    print(_describe_test(trained))
    if result.robustness is not None:
        print_intervals(result.robustness)
    if trained.cross_validation is not None:
        print(*trained.cross_validation.describe(), sep="\n")
    if trained.calibration is not None:
        print(trained.calibration.describe())
    if trained.unknown_detector is not None:
        print(trained.unknown_detector.describe())
    shown = "a picture" if result.test is not None else "a picture of validation images"
    print_line(f"saved to {trained.folder}" + (f", with {shown}: {trained.picture}" if trained.picture else ""))


def _describe_test(trained: "TrainedModel") -> str:
    result, data = trained.result, trained.data
    if result.moved is None:
        return "no test images, so the accuracy on new images is not known"
    images, draws, untested = len(data.test.labels), result.moved.draws, len(data.untested_classes)
    movements = f"; {result.how}: mean ± standard deviation of {draws} random movements" if draws > 1 else ""
    classes = f"; {untested} of the {len(data.class_names)} classes have none" if untested else ""
    return f"{images} test image{'s' * (images != 1)}{classes}{movements}"
