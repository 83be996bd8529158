"""The rows of ``tigranet predict``, for tables and for JSON."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tigranet.evaluation import Prediction

CLASS_PREFIX = "p_"
"""Begin of the name of a column with the probability of a class, so that no class is called like another column."""


def column_names(
    class_names: Sequence[str], *, top: int, probabilities: bool, label_sets: bool, novelty: bool = False
) -> list[str]:
    """Return the names of the columns of a table of predictions.

    Args:
        class_names: Names of the classes.
        top: Number of most probable classes that are listed.
        probabilities: Whether there is a column for each class.
        label_sets: Whether there is a column of label sets.
        novelty: Whether there is a column of the novelty.

    Returns:
        The names.

    Example:
        >>> column_names(["nut", "bolt"], top=1, probabilities=True, label_sets=False)
        ['path', 'label', 'probability', 'label_1', 'probability_1', 'p_nut', 'p_bolt']
    """
    ranks = range(1, min(top, len(class_names)) + 1)
    return [
        "path",
        "label",
        "probability",
        *(["labels"] if label_sets else []),
        *(["novelty"] if novelty else []),
        *(name for rank in ranks for name in (f"label_{rank}", f"probability_{rank}")),
        *(f"{CLASS_PREFIX}{name}" for name in class_names if probabilities),
    ]


def prediction_row(prediction: "Prediction", as_json: bool) -> dict[str, Any]:
    """Return the values of a row.

    Args:
        prediction: The prediction.
        as_json: Whether the row is a JSON object, in which lists and objects are values. In a table a label set is JSON
            text, because names may contain any separator, and the other values have columns of their own.

    Returns:
        The values by column name.
    """
    row: dict[str, Any] = {"path": prediction.path, "label": prediction.label, "probability": prediction.probability}
    if prediction.labels is not None:
        labels = list(prediction.labels)
        row["labels"] = labels if as_json else json.dumps(labels, ensure_ascii=False)
    if prediction.novelty is not None:
        row["novelty"] = prediction.novelty
    if prediction.top is not None and as_json:
        row["top"] = [ranked._asdict() for ranked in prediction.top]
    elif prediction.top is not None:
        for rank, ranked in enumerate(prediction.top, start=1):
            row |= {f"label_{rank}": ranked.label, f"probability_{rank}": ranked.probability}
    if prediction.probabilities is not None and as_json:
        row["probabilities"] = dict(prediction.probabilities)
    elif prediction.probabilities is not None:
        row |= {f"{CLASS_PREFIX}{name}": value for name, value in prediction.probabilities.items()}
    return row
