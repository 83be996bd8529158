"""How often label sets contain the true label, and how large they are, on upright and on rotated test images."""

from dataclasses import asdict, dataclass
from typing import Any

from tigranet.data.dataset import DataSet
from tigranet.evaluation.canonical_logits import canonical_logits
from tigranet.evaluation.conformal import ConformalCalibration
from tigranet.evaluation.moved_logits import LabelledLogits, rotated_logits
from tigranet.evaluation.robustness import check_compatible
from tigranet.model import TIGraNet


@dataclass(frozen=True)
class SetMeasurement:
    """Label sets of labelled images."""

    coverage: float
    """Percentage of the sets that contain the true label."""
    mean_size: float
    """Mean number of labels in a set."""
    single: float
    """Percentage of the sets that are a single label."""


@dataclass(frozen=True)
class SetCoverage:
    """Label sets of the test images of a data set, upright and rotated."""

    coverage: float
    """The coverage that was asked for, as a fraction."""
    calibration_images: int
    """Number of images that the label sets were calibrated on."""
    images: int
    """Number of test images."""
    by_rotation: dict[str, SetMeasurement]
    """The measurements by the name of the rotation; the first is that of upright images."""

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as values that can be written as JSON.

        Returns:
            The fields by name.
        """
        return asdict(self)


def measure_sets(logits: LabelledLogits, calibration: ConformalCalibration, coverage: float) -> SetMeasurement:
    """Measure the label sets of images whose labels are known.

    Args:
        logits: Logits and labels of the images.
        calibration: What the sets are calibrated on.
        coverage: The coverage that is asked for.

    Returns:
        The coverage that is reached, and the size of the sets.
    """
    sets = calibration.label_sets(logits.logits, coverage)
    sizes = sets.sum(1)
    return SetMeasurement(
        coverage=100 * float(sets.gather(1, logits.labels[:, None]).double().mean()),
        mean_size=float(sizes.double().mean()),
        single=100 * float((sizes == 1).double().mean()),
    )


def measure_set_coverage(
    net: TIGraNet, data: DataSet, calibration: ConformalCalibration, coverage: float, seed: int = 0
) -> SetCoverage:
    """Measure the label sets of upright and of rotated test images.

    Args:
        net: The network.
        data: The data set.
        calibration: What the sets are calibrated on.
        coverage: The coverage that is asked for.
        seed: Seed of the random angles.

    Returns:
        The measurements.

    Raises:
        ValueError: If the network does not fit the data set, if there are no test images, or if ``coverage`` is not
            between 0 and 1.
    """
    check_compatible(net, data)
    by_rotation = rotated_logits(net, data, seed, canonical_logits(net))
    return SetCoverage(
        coverage=coverage,
        calibration_images=calibration.images,
        images=len(data.test.labels),
        by_rotation={rotation: measure_sets(logits, calibration, coverage) for rotation, logits in by_rotation.items()},
    )
