"""``tigranet evaluate``."""

import json

from rich.table import Table

from tigranet.cli.accuracy_intervals import print_intervals
from tigranet.cli.options import Coverage, Data, DataDir, Json, Model, MovementSeed, Precision, global_options
from tigranet.cli.output import print_table, print_unreadable_files, progress_console


def evaluate(
    model: Model,
    data: Data,
    coverage: Coverage = None,
    seed: MovementSeed = None,
    data_dir: DataDir = None,
    precision: Precision = "32",
    as_json: Json = False,
) -> None:
    """Measure the accuracy on test images: as they are, rotated and shifted, and the drop.

    Images are split as for the training, and images that the model was trained on are left out.
    """
    from tigranet.workflows.evaluate import evaluate as evaluate_model

    console = progress_console()
    evaluation = evaluate_model(
        model,
        data,
        coverage=coverage,
        seed=seed,
        data_dir=data_dir,
        device=global_options().device,
        precision=precision,
        console=console,
    )
    print_unreadable_files(evaluation.unreadable_files, console)
    robustness = evaluation.robustness
    if robustness.unanswered:
        console.print(
            f"test images for which the network gives no finite answer, counted as wrong: {robustness.unanswered}"
        )
    sets = evaluation.label_sets
    if as_json:
        measured = {} if sets is None else {"label_sets": sets.to_json()}
        print(json.dumps(robustness.to_json() | {"excluded_images": evaluation.excluded_images} | measured))
        return
    table = Table(f"{robustness.images} test images of {robustness.data}", "accuracy, %", "drop")
    table.add_row(robustness.unmoved, f"{robustness.upright:.2f}", "")
    for movement, accuracy in robustness.moved.items():
        table.add_row(movement, str(accuracy), f"{robustness.drop(movement):.2f}")
    print_table(table)
    print_intervals(robustness)
    if sets is not None:
        table = Table(f"label sets of coverage {sets.coverage}", "coverage, %", "mean size", "single labels, %")
        for rotation, row in sets.by_rotation.items():
            table.add_row(rotation, f"{row.coverage:.2f}", f"{row.mean_size:.2f}", f"{row.single:.1f}")
        print_table(table)
        print(f"label sets are calibrated on {sets.calibration_images} validation images")
