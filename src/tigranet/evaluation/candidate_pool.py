"""The most uncertain images of a stream of any length, each picture once, in bounded memory."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from tigranet.evaluation.image_selection import margin_uncertainty

MAX_CANDIDATES = 20_000
"""Number of images that are kept, those of which a network is least certain. With 512 numbers per image they take
40 MB, and up to twice as much while they are collected."""


@dataclass(frozen=True)
class Candidate:
    """An image that may be chosen."""

    path: Path
    """Path of its file, of several copies the first in alphabetical order."""
    digest: int
    """A hash of the picture, equal for its quarter turns."""
    probabilities: Float[np.ndarray, " classes"]
    """Probabilities of the classes."""
    representation: Float[np.ndarray, " units"]
    """Input of the last layer of the network, in single precision."""

    @property
    def uncertainty(self) -> float:
        """See :func:`~tigranet.evaluation.image_selection.margin_uncertainty`."""
        return float(margin_uncertainty(self.probabilities[None])[0])


class CandidatePool:
    """Collects images in any order, and keeps the most uncertain ones.

    The content does not depend on the order of the images.

    Args:
        capacity: Number of images to keep.
    """

    def __init__(self, capacity: int = MAX_CANDIDATES) -> None:
        self.duplicates = 0
        """Number of images that are copies or quarter turns of an earlier one."""
        self._capacity = capacity
        self._digests: set[int] = set()
        self._kept: dict[int, Candidate] = {}

    def __len__(self) -> int:
        """Return the number of different pictures so far, whether they are kept or not."""
        return len(self._digests)

    def add(self, candidate: Candidate) -> None:
        """Add an image.

        Args:
            candidate: The image.
        """
        if candidate.digest in self._digests:
            self.duplicates += 1
            kept = self._kept.get(candidate.digest)
            if kept is not None and str(candidate.path) < str(kept.path):
                self._kept[candidate.digest] = replace(kept, path=candidate.path)
            return
        self._digests.add(candidate.digest)
        self._kept[candidate.digest] = candidate
        if len(self._kept) >= 2 * self._capacity:
            self.candidates()

    def candidates(self) -> list[Candidate]:
        """Forget all images except the most uncertain ones, and return these.

        Returns:
            The images, the most uncertain first.
        """
        self._kept = {candidate.digest: candidate for candidate in self._ranked()[: self._capacity]}
        return list(self._kept.values())

    def _ranked(self) -> list[Candidate]:
        return sorted(self._kept.values(), key=lambda candidate: (-candidate.uncertainty, candidate.digest))
