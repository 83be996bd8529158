"""The part of a model card that describes the training and the measured accuracies."""

from tigranet.terminal_text import escape_control_characters
from tigranet.workflows.measured_training import TrainingResult


def model_card(result: TrainingResult, train_images: int, command: str = "") -> str:
    """Return the description of a trained network, in Markdown.

    Args:
        result: What was trained and measured.
        train_images: The number of training images.
        command: The command that trained the network, if one did.

    Returns:
        The architecture, the data, the recipe, and a table of the accuracies on test images.
    """
    rows = [("upright", f"{result.test:.2f}", "")]
    rows += [
        (movement, str(accuracy), f"{result.robustness.drop(movement):.2f}")
        for movement, accuracy in result.robustness.moved.items()
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    origin = f" Trained by `{escape_control_characters(command)}`." if command else ""
    return f"""\
## What it is

`{result.architecture}`, {result.parameters:,} parameters, boundary {result.boundary}, trained on {train_images:,}
upright images of {escape_control_characters(result.data)}, never rotated. It reads images with values in [0, 1].

Recipe: {result.recipe}.{origin}

## What it does

Accuracy in per cent on {result.robustness.images:,} test images that it was not trained on, and the drop in percentage
points when they are moved:

| test images | accuracy | drop |
| --- | --- | --- |
{table}
"""
