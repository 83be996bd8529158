"""The detection of unknown images in the scikit-learn classifier."""

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.batched_inference import require_finite
from tigranet.evaluation.unknown.distance_and_probability import DistanceAndProbability
from tigranet.evaluation.unknown.known_scores import MIN_SCORES, check_share
from tigranet.evaluation.unknown.novelty import (
    DEFAULT_SHARE,
    NoveltyDetector,
    UnknownImages,
    logits_and_novelty,
    measure_images,
)
from tigranet.evaluation.unknown.representation import known_images
from tigranet.image_estimator import ImageEstimator


class NoveltyEstimator(ImageEstimator):
    """An estimator that tells how little images resemble those of ``fit``."""

    detector_: NoveltyDetector | None
    _reference: tuple[DistanceAndProbability, Float[Tensor, " train"]] | None

    def _fit_novelty(self, train: LabelledImages, validation: LabelledImages | None) -> None:
        """Learn what training images look like, and calibrate the detector if there are validation images."""
        known = known_images(self.model_, measure_images(self.model_, train.images), train.labels)
        self._reference = (
            (DistanceAndProbability.estimate(known), known.images.contrast) if len(known.labels) > 1 else None
        )
        self.detector_ = None
        if validation is not None:
            self._calibrate_novelty(validation)

    def _calibrate_novelty(self, data: LabelledImages) -> None:
        reference = getattr(self, "_reference", None)  # none in an estimator that an earlier version has pickled
        self.detector_ = None
        if reference is not None and len(data.labels) >= MIN_SCORES:
            detector, contrasts = reference
            self.detector_ = NoveltyDetector.calibrate(detector, contrasts, self.model_, data)

    def novelty(self, X: Any, share: float = DEFAULT_SHARE) -> np.ndarray:
        """Return how little each image resembles the classes of ``fit``: above 1 it is probably of none of them.

        An image and its quarter turns have the same novelty. The detector is calibrated by ``calibrate``, or else on
        the images that ``fit`` has held out for validation.

        Args:
            X: The images.
            share: The share of images of the classes of ``fit`` whose novelty is at most 1.

        Returns:
            Numbers (n,), about 0 for a typical image of a known class.

        Raises:
            ValueError: If ``share`` is not between 0 and 1, if the detector is not calibrated, or if the network has no
                finite answer for an image.
        """
        check_is_fitted(self)
        check_share(share)
        detector: NoveltyDetector | None = getattr(self, "detector_", None)
        if detector is None:
            raise ValueError(
                "the novelty needs at least 2 images that fit has not trained on: call calibrate(X, y) with such "
                "images first"
            )
        function = logits_and_novelty(self.model_, UnknownImages(detector, share))
        return require_finite(self._apply(function, self._images(X, reset=False)))[:, -1].numpy()
