"""How many images have each label: what a user wants to know after the predictions of a whole folder."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tigranet.data import UnreadableFile
from tigranet.evaluation import UNKNOWN, Prediction
from tigranet.quoted_text import shorten

MAX_LISTED = 20
"""Number of labels that are listed, the most frequent first."""
MAX_LABEL = 40
"""Number of characters of a label that are shown."""


@dataclass(frozen=True)
class PredictionSummary:
    """Numbers of images by label."""

    counts: Mapping[str, int]
    """Number of images by label, the most frequent first and 'unknown' last."""
    unreadable: int = 0
    """Number of files without a prediction."""

    @property
    def images(self) -> int:
        """Number of images with a prediction."""
        return sum(self.counts.values())

    def describe(self, max_listed: int = MAX_LISTED) -> list[str]:
        r"""Return the numbers as lines for a terminal.

        Args:
            max_listed: Number of labels to list, beside 'unknown'.

        Returns:
            A heading, and one indented line per label.

        Example:
            >>> print(*PredictionSummary({"bolt": 22, "nut": 15, "unknown": 3}, unreadable=2).describe(), sep="\n")
            40 images have a prediction, 2 could not be read
              bolt     22   55.0 %
              nut      15   37.5 %
              unknown   3    7.5 %
        """
        known = [label for label in self.counts if label != UNKNOWN]
        rows = [(shorten(label, MAX_LABEL), self.counts[label]) for label in known[:max_listed]]
        if others := known[max_listed:]:
            rows.append((f"{len(others)} other labels", sum(self.counts[label] for label in others)))
        if UNKNOWN in self.counts:
            rows.append((UNKNOWN, self.counts[UNKNOWN]))
        width = max((len(label) for label, _ in rows), default=0)
        digits = max((len(f"{count:,}") for _, count in rows), default=0)
        unreadable = f", {self.unreadable:,} could not be read" if self.unreadable else ""
        verb = "image has" if self.images == 1 else "images have"
        return [
            f"{self.images:,} {verb} a prediction{unreadable}",
            *(f"  {label:{width}}  {count:{digits},}  {100 * count / self.images:5.1f} %" for label, count in rows),
        ]


class PredictionCounter:
    """Count predictions while they pass."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._unreadable = 0

    def count(self, results: Iterable[Prediction | UnreadableFile]) -> Iterator[Prediction | UnreadableFile]:
        """Pass results on, and count them.

        Args:
            results: Predictions, and files without one.

        Yields:
            The same items.
        """
        for result in results:
            if isinstance(result, UnreadableFile):
                self._unreadable += 1
            else:
                self._counts[result.label] += 1
            yield result

    @property
    def summary(self) -> PredictionSummary:
        """The numbers so far."""
        ordered = sorted(self._counts.items(), key=lambda item: (item[0] == UNKNOWN, -item[1], item[0]))
        return PredictionSummary(dict(ordered), self._unreadable)
