"""What a prediction tells beside its label: the most probable classes, and the probabilities of all classes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor


class RankedLabel(NamedTuple):
    """One of the most probable classes of an image."""

    label: str
    """Name of the class."""
    probability: float
    """Its probability, rounded to 6 decimals."""


class Detail(NamedTuple):
    """Which details to add to predictions."""

    top: int = 0
    """Number of most probable classes; 0 for none."""
    probabilities: bool = False
    """Whether to add the probabilities of all classes."""

    def check(self) -> None:
        """Check the number of classes.

        Raises:
            ValueError: If it is negative.
        """
        if self.top < 0:
            raise ValueError(f"expected top to be the number of classes to list, at least 1, got {self.top}")

    def fields(self, class_names: Sequence[str], logits: Float[Tensor, " classes"]) -> dict[str, Any]:
        """Return the fields of :class:`~tigranet.evaluation.file_predictions.Prediction` that hold the details.

        Args:
            class_names: Name of each class.
            logits: The logits of the image.

        Returns:
            The fields ``top`` and ``probabilities``, or none of them if they were not asked for.

        Example:
            >>> from torch import tensor
            >>> Detail(top=2).fields(["a", "b", "c"], tensor([0.0, 2.0, 2.0]))["top"][0]
            RankedLabel(label='b', probability=0.468311)
        """
        fields: dict[str, Any] = {}
        if self.top or self.probabilities:
            values = [round(value, 6) for value in logits.softmax(0).tolist()]
            if self.top:
                order = logits.argsort(descending=True, stable=True).tolist()[: self.top]
                fields["top"] = tuple(RankedLabel(class_names[index], values[index]) for index in order)
            if self.probabilities:
                fields["probabilities"] = dict(zip(class_names, values, strict=True))
        return fields


NO_DETAIL = Detail()
"""Label and probability alone."""
