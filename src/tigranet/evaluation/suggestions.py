"""What to label next and which labels to check: the results of ``tigranet suggest``, without pixels."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tigranet.data.letterbox import UnreadableFile

Evidence = Literal["predicted", "identical image"]
"""Why a label is suspicious: a classifier predicts another class, or the same picture also has another label."""


@dataclass(frozen=True)
class ImageSuggestion:
    """An image to label, and what the network takes it for."""

    path: str
    """Path of the file."""
    label: str
    """The most probable class."""
    probability: float
    """Its probability."""
    second_label: str | None
    """The second most probable class; None if there is only one class."""
    second_probability: float
    """Its probability."""
    uncertainty: float
    """1 minus the difference of the two probabilities: 1 if the network cannot tell the two classes apart."""


@dataclass(frozen=True)
class ImageSuggestions:
    """Which images to label next."""

    images: tuple[ImageSuggestion, ...]
    """The images, the most uncertain first."""
    examined: int
    """Number of different unlabelled images that they were chosen from."""
    labelled: int
    """Number of images that were left out because they are labelled already."""
    duplicates: int
    """Number of images that were left out because they are copies or quarter turns of another one."""
    knows_training_images: bool = True
    """Whether it is known which images the network was trained on."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values.

        Returns:
            The fields by name.
        """
        return asdict(self) | {"unreadable_files": _plain_files(self.unreadable_files)}


@dataclass(frozen=True)
class LabelSuggestion:
    """An image whose label is probably wrong."""

    path: str | None
    """Path of the file; None if the images are not in files of their own."""
    position: int
    """Position of the image among all images that were read."""
    label: str
    """The given label."""
    suggested: str
    """A label that is more probable."""
    score: float
    """Probability of the suggested label minus that of the given one, from -1 to 1; 1 for identical images."""
    evidence: Evidence
    """Why the label is suspicious."""


@dataclass(frozen=True)
class LabelSuggestions:
    """Which labels are probably wrong."""

    labels: tuple[LabelSuggestion, ...]
    """The images, the most suspicious first."""
    examined: int
    """Number of different images whose labels were judged."""
    accuracy: float
    """Percentage of the judged labels that a classifier predicts that was not fitted to the image."""
    duplicates: int
    """Number of images that were not judged because they are copies or quarter turns of another one."""
    unjudged_classes: tuple[str, ...] = ()
    """Classes with too few images, or with images of too few groups, to judge their labels."""
    unjudged_images: int = 0
    """Number of images of these classes."""
    left_out: int = 0
    """Number of further suspicious labels, which are not listed because there are too many to be credible."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values.

        Returns:
            The fields by name.
        """
        return asdict(self) | {"unreadable_files": _plain_files(self.unreadable_files)}


def _plain_files(files: tuple[UnreadableFile, ...]) -> list[dict[str, str]]:
    return [{"path": str(file.path), "reason": file.reason} for file in files]
