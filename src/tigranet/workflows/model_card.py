"""The part of a model card that describes the training and the measured accuracies."""

from collections.abc import Sequence

from tigranet.data.class_names import list_names
from tigranet.data.duplicates import DuplicateCounts
from tigranet.terminal_text import escape_control_characters
from tigranet.workflows.measured_training import TrainingResult


def model_card(
    result: TrainingResult,
    train_images: int,
    command: str = "",
    untested_classes: Sequence[str] = (),
    duplicates: DuplicateCounts | None = None,
    orientation: str = "upright",
    method: str | None = None,
) -> str:
    """Return the description of a trained network, in Markdown.

    Args:
        result: What was trained and measured.
        train_images: The number of training images.
        command: The command that trained the network, if one did.
        untested_classes: Names of the classes without test images.
        duplicates: Images of the data that occur more than once, if this was examined.
        orientation: Orientation of the training images, see :attr:`tigranet.data.DataSet.orientation`.
        method: How the network was made, if it was not trained by the recipe.

    Returns:
        The architecture, the data, the recipe, and a table of the accuracies on test images.
    """
    images = f"{orientation} images".lstrip()
    never_rotated = ", never rotated" if orientation == "upright" else ""
    data = escape_control_characters(result.data)
    origin = f" Trained by `{escape_control_characters(command)}`." if command else ""
    return f"""\
## What it is

`{result.architecture}`, {result.parameters:,} parameters, boundary {result.boundary}, trained on {train_images:,}
{images} of {data}{never_rotated}. It reads images with values in [0, 1].

{method or f"Recipe: {result.recipe}."}{origin}

## What it does

{_accuracies(result, untested_classes, images)}{_copies(duplicates)}"""


def _accuracies(result: TrainingResult, untested_classes: Sequence[str], images: str) -> str:
    if result.robustness is None:
        return _without_test_images(result, images)
    rows = [(result.robustness.unmoved, f"{result.robustness.upright:.2f}", "")]
    rows += [
        (movement, str(accuracy), f"{result.robustness.drop(movement):z.2f}")
        for movement, accuracy in result.robustness.moved.items()
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    untested = (
        f"\nThere are no test images of some classes, so nothing is known about them: {list_names(untested_classes)}.\n"
        if untested_classes
        else ""
    )
    return f"""\
Accuracy in per cent on {result.robustness.images:,} test images that it was not trained on, and the drop in percentage
points when they are moved:

| test images | accuracy | drop |
| --- | --- | --- |
{table}
{untested}"""


def _copies(duplicates: DuplicateCounts | None) -> str:
    sentences = duplicates.describe() if duplicates else []
    notes = "\n".join(f"- {sentence}" for sentence in sentences)
    return f"\nImages that occur more than once:\n\n{notes}\n" if sentences else ""


def _without_test_images(result: TrainingResult, images: str) -> str:
    rows = [("training images", f"{result.train:.2f}")]
    if result.validation is not None:
        rows.append(("validation images", f"{result.validation:.2f}"))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"""\
There were no test images, so its accuracy on new images is not known. Accuracy in per cent on
{images} that were used during the training:

| images | accuracy |
| --- | --- |
{table}
"""
