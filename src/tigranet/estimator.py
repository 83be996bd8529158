"""A TIGraNet classifier as a scikit-learn estimator."""

import warnings
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor

from tigranet.architecture import Architecture
from tigranet.choices import Boundary, Keep, Schedule, WindowOption
from tigranet.choose_architecture import ACCURATE, choose_preset, epochs_share, named_default
from tigranet.data.dataset import LabelledImages
from tigranet.devices import trains_on_cuda
from tigranet.evaluation.batched_inference import apply_in_batches, require_finite
from tigranet.evaluation.canonical_logits import canonical_logits, double_head
from tigranet.evaluation.conformal import ConformalCalibration, check_coverage
from tigranet.feature_network import check_channels
from tigranet.fine_tuning import AUTO, Start, default_start, load_start
from tigranet.image_estimator import BATCH_SIZE
from tigranet.model import TIGraNet
from tigranet.novelty_estimator import NoveltyEstimator
from tigranet.recipe_parameters import RECIPE_PARAMETERS
from tigranet.training.process_state import seeded
from tigranet.training.recipe import Recipe
from tigranet.training.recipe_arguments import recipe_fields


class TIGraNetClassifier(ClassifierMixin, TransformerMixin, NoveltyEstimator):
    """A TIGraNet classifier for arrays of images. Trained on upright images, it classifies them at any angle.

    Images are (n, H, W), (n, H, W, C) with channels last, or (n, features), and may have another height and width after
    ``fit``. Integers of 8 and 16 bits are divided by the largest value of their type. Wider integers, which also come
    from lists, are divided by 1, 255 or 65535, whichever first covers the largest value of ``fit``; if ``fit`` received
    narrow integers, by the same value as those. Larger values are an error after ``fit``. Floating-point numbers are
    used unchanged.

    Args:
        architecture: A preset, such as ``paper-small`` and ``paper``, which are those of the paper, or layers in the
            paper's notation. ``fast`` and ``accurate`` choose a preset by the number and the size of the images, see
            :func:`tigranet.choose_architecture.choose_preset`; ``auto`` is ``accurate`` on a GPU and ``fast`` on a CPU,
            where an accurate network takes many times as long.
        boundary: What lies beyond the border of the pixel grid: ``free``, or ``torus``, for exact invariance to shifts.
        window: ``disc`` fades out the corners of the images, ``none`` keeps them, and ``auto`` chooses from the images
            of ``fit`` and the network, see :func:`tigranet.choose_window.choose_window`.
        margin: Width in pixels of a margin of background around the images: the median of their border pixels.
        image_shape: (H, W) or (H, W, C), where ``X`` is (n, features) and images are not square.
        epochs: Number of passes over the training images. None selects it for the number of images and the network, as
            for all parameters below whose default is None. See :meth:`tigranet.training.Recipe.for_network`.
        batch_size: Batch size.
        learning_rate: Highest learning rate.
        weight_decay: Decoupled weight decay (AdamW) of all weights except biases and normalisations. 0 is plain Adam.
        schedule: Learning-rate schedule: ``one-cycle``, up and down again, or ``cosine``, down along a cosine.
        jitter: Maximum random shift of each training image along each axis, in pixels.
        shift: Maximum random shift of each training image by whole pixels, as a fraction of the image size.
        flip: Whether half of the training images are mirrored, for data in which a mirror image has the same class.
        zoom: Maximum random change of the scale of each training image, as a fraction of the image size.
        stretch: Maximum random stretch along a random axis, as a fraction of the image size.
        warp: Strength of a random smooth deformation, as a fraction of the image size.
        tone: Strength of a random change of brightness and contrast.
        tint: Maximum random change of the brightness of each channel.
        blur: Maximum weight of a smoothed copy, which is blended with half of the training images.
        cutout: Side length of a random square of each training image that is replaced by the mean of the image, as a
            fraction of the image size.
        smoothing: Label smoothing: the fraction of each label that is spread over all classes.
        dropout: Probability with which a feature is set to zero before the classifier.
        average: Decay per step of a moving average of the weights, such as 0.999, which is kept instead of the weights.
        accumulate: Number of parts of a batch that are computed one after the other, to save memory.
        balanced: Whether all classes have the same weight in the loss, regardless of their number of images.
        keep: Which weights to keep: those of the ``last`` step, or the ``best``, of the lowest validation loss.
        patience: Stop early when the validation loss has not fallen for this many epochs, and keep the best weights.
            None trains for all epochs.
        validation_fraction: Fraction of the images that ``fit`` holds out for validation, with the same fraction of
            each class, if ``keep`` is ``best`` or ``patience`` is set. Otherwise all images are used for training.
        random_state: Seed or generator of the weights, the held-out images and the training. An integer gives the same
            classifier every time.
        verbose: Whether to draw a progress bar.
        init: The folder or the name of a saved network to start from. Its architecture, boundary, window and margin are
            kept. Classes that both have, by their names, keep what they have learned. None starts from random weights,
            and ``auto`` from a network of the package if the default architecture has one, see
            :func:`tigranet.fine_tuning.default_start`.
        warm_start: Whether another call of ``fit`` starts from the network of the previous one, in the same way.

    Attributes:
        classes_: The labels, sorted.
        model_: The trained :class:`TIGraNet`.
        calibration_: What :meth:`predict_sets` is calibrated on, or None.
        detector_: The detector of unknown images for :meth:`novelty`, or None.
        image_shape_: Shape of the images of ``fit``.
        n_features_in_: Number of values of each image.
        scale_: What integers of 32 and 64 bits are divided by, or None to leave them unchanged, if ``fit`` received
            floating-point numbers outside [0, 1].

    A ``fit`` that raises an error leaves the estimator as it was.

    All checks of :func:`sklearn.utils.estimator_checks.check_estimator` pass except one,
    ``check_sample_weight_equivalence_on_dense_data``. It asks that an image of weight 0 has the same effect as a
    missing image, and an image of weight 2 the same effect as two images, with predictions that agree to 7 digits.
    Training in random batches cannot meet this: the number of images decides which images form a batch. In the loss of
    a batch, an image of weight 2 counts like two images, and an image of weight 0 does not count.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(n_class=2, return_X_y=True)
        >>> classifier = TIGraNetClassifier("SC[3,3]-DP[40]-S[6]-FC[20]", epochs=10, random_state=0).fit(X / 16, y)
        >>> bool(classifier.score(X / 16, y) > 0.9)
        True
    """

    def __init__(
        self,
        architecture: str | Architecture = "auto",
        *,
        boundary: Boundary = "free",
        window: WindowOption = "auto",
        margin: int = 0,
        image_shape: tuple[int, ...] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        schedule: Schedule = "one-cycle",
        jitter: float = 0.5,
        shift: float | None = None,
        flip: bool = False,
        zoom: float | None = None,
        stretch: float | None = None,
        warp: float | None = None,
        tone: float | None = None,
        tint: float | None = None,
        blur: float | None = None,
        cutout: float | None = None,
        smoothing: float | None = None,
        dropout: float | None = None,
        average: float | None = None,
        accumulate: int | None = None,
        balanced: bool = False,
        keep: Keep = "last",
        patience: int | None = None,
        validation_fraction: float = 0.15,
        random_state: Any = None,
        verbose: bool = False,
        init: str | Path | None = AUTO,
        warm_start: bool = False,
    ) -> None:
        self.architecture = architecture
        self.boundary = boundary
        self.window = window
        self.margin = margin
        self.image_shape = image_shape
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.jitter = jitter
        self.shift = shift
        self.flip = flip
        self.zoom = zoom
        self.stretch = stretch
        self.warp = warp
        self.tone = tone
        self.tint = tint
        self.blur = blur
        self.cutout = cutout
        self.smoothing = smoothing
        self.dropout = dropout
        self.average = average
        self.accumulate = accumulate
        self.balanced = balanced
        self.keep = keep
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose
        self.init = init
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TIGraNetClassifier":
        """Train on images.

        Args:
            X: The images.
            y: Their labels, of at least 2 classes.
            sample_weight: Weight of each image in the loss. An image of weight 2 counts like two images.

        Returns:
            This estimator.

        Raises:
            ValueError: If the images, the labels or the values of parameters are not valid.
            TypeError: If a parameter has a wrong type.
        """
        from rich.console import Console

        from tigranet.training import fit  # imports Lightning, which a prediction does not need

        with self._restore_on_error():
            self._check_parameters()
            fields = recipe_fields({name: getattr(self, name) for name in RECIPE_PARAMETERS})
            images, y = self._images(X, reset=True, y=y)
            if y.dtype == object and len(kinds := {type(label).__name__ for label in y.flat}) > 1:
                raise ValueError(f"Unknown label type: expected labels of one type, got {' and '.join(sorted(kinds))}")
            check_classification_targets(y)
            self.classes_, labels = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(f"expected at least 2 classes, got one class: {self.classes_.tolist()[0]!r}")
            weights = None
            if sample_weight is not None:
                weights = torch.from_numpy(
                    _check_sample_weight(sample_weight, images.numpy(), dtype=np.float32, ensure_non_negative=True)
                )
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            start = self._start(images)
            names = [str(label) for label in self.classes_.tolist()]
            with seeded(seed):
                if start is None:
                    net, share = self._new_network(images, names)
                else:
                    net, share = start.with_classes(len(names), names), 1.0
            data = LabelledImages(images, torch.from_numpy(labels.astype(np.int64)), weights)
            train, validation = self._split(data, seed)
            recipe = Recipe.for_network(net, len(train.labels), **fields, seed=seed)
            if self.epochs is None:
                recipe = recipe.shortened(share)
            fit(net, train, validation, recipe, Console(stderr=True, highlight=False) if self.verbose else None)
            self.model_ = net.cpu()
            self.calibration_ = None if validation is None else self._calibration(validation)
            self._fit_novelty(train, validation)
        return self

    def _start(self, images: Tensor) -> TIGraNet | None:
        """Return the network to start from, if there is one."""
        if self.warm_start and hasattr(self, "model_"):
            start, name = self.model_, "the previous fit"
        elif self.init is not None and self.init != AUTO:
            if named_default(self.architecture) is not None:
                raise ValueError(
                    f"expected architecture to be that of '{self.init}', or 'auto', got '{self.architecture}': a "
                    "training that starts from a network keeps its architecture"
                )
            architecture = None if self.architecture == "auto" else self.architecture
            layers = Architecture.parse(architecture) if isinstance(architecture, str) else architecture
            start, name = load_start(self.init, layers, self.boundary, self.window, self.margin), str(self.init)
        else:
            return None
        check_channels(start, name, images)
        return start

    def _new_network(self, images: Tensor, names: list[str]) -> tuple[TIGraNet, float]:
        """Return a new network, and the share of the default number of epochs to train it for.

        It has random weights, or for a default architecture those of a network of the package.
        """
        count, channels, *sides = images.shape
        if self.architecture != "auto" and named_default(self.architecture) is None:
            options = self._network_options(self.architecture, images)
            return TIGraNet(num_classes=len(names), in_maps=channels, class_names=names, **options), 1.0
        side, gpu = max(sides), trains_on_cuda()
        accurate = gpu if self.architecture == "auto" else self.architecture == ACCURATE
        preset = choose_preset(count, side, accurate)
        options = self._network_options(preset, images)
        start: Start | None = None
        if self.init == AUTO:
            start = default_start(preset, count, channels, self.boundary, options["window"], self.margin)
        share = epochs_share(count, side, accurate, gpu, start is None)
        if start is not None:
            return start.network.with_classes(len(names), names), share
        return TIGraNet(num_classes=len(names), in_maps=channels, class_names=names, **options), share

    def _split(self, data: LabelledImages, seed: int) -> tuple[LabelledImages, LabelledImages | None]:
        """Hold out images for validation if ``keep`` or ``patience`` needs them."""
        if self.keep != "best" and self.patience is None:
            return data, None
        if not isinstance(self.validation_fraction, Real):
            raise TypeError(f"validation_fraction must be a number, got {self.validation_fraction!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be in (0, 1), got {self.validation_fraction}")
        from sklearn.model_selection import train_test_split  # slow to import

        try:
            train, validation = train_test_split(
                np.arange(len(data.labels)),
                test_size=float(self.validation_fraction),
                random_state=seed,
                stratify=data.labels.numpy(),
            )
        except ValueError as error:
            raise ValueError(
                f"cannot hold out {self.validation_fraction:g} of {len(data.labels)} images of {len(self.classes_)} "
                "classes for validation: use more images, another validation_fraction, or keep='last' without patience "
                f"({error})"
            ) from None
        return data.take(torch.from_numpy(train)), data.take(torch.from_numpy(validation))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        The fully-connected layers compute in double precision. In single precision, the last digits of a matrix product
        depend on the number of rows, so the answer for an image would depend on the other images in ``X``.

        Args:
            X: The images.

        Returns:
            Probabilities (n, classes), in the order of ``classes_``.

        Raises:
            ValueError: If the network has no finite answer for an image, because its values are extreme.
        """
        features = torch.from_numpy(self._features(X)).double()
        head = double_head(self.model_)
        return require_finite(apply_in_batches(head, features.split(BATCH_SIZE))).softmax(1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each image.

        Args:
            X: The images.

        Returns:
            Labels (n,).
        """
        most_probable = self.predict_proba(X).argmax(1)
        return self.classes_[most_probable]

    def calibrate(self, X: Any, y: Any) -> "TIGraNetClassifier":
        """Calibrate :meth:`predict_sets` and :meth:`novelty` on images that ``fit`` has not received.

        Args:
            X: The images.
            y: Their labels, which must be among ``classes_``.

        Returns:
            This estimator.

        Raises:
            ValueError: If the images or the labels are not valid.
        """
        check_is_fitted(self)
        images, y = self._images(X, reset=False, y=y)
        if unknown := sorted(set(y.tolist()) - set(self.classes_.tolist()), key=str):
            raise ValueError(f"expected labels that fit has received, got others, such as {unknown[0]!r}")
        labels = torch.from_numpy(np.searchsorted(self.classes_, y).astype(np.int64))
        self.calibration_ = self._calibration(LabelledImages(images, labels))
        self._calibrate_novelty(LabelledImages(images, labels))
        return self

    def _calibration(self, data: LabelledImages) -> ConformalCalibration:
        logits = self._apply(canonical_logits(self.model_), data.images)
        return ConformalCalibration.measure(logits, data.labels)

    def predict_sets(self, X: Any, coverage: float = 0.95) -> np.ndarray:
        """Return for each image a set of classes that contains the true class with a guaranteed probability.

        The guarantee is that of :class:`~tigranet.evaluation.conformal.ConformalCalibration`. An image and its quarter
        turns have the same set. Sets are calibrated by :meth:`calibrate`, or else on the images that ``fit`` has held
        out for validation; as these select the weights, the coverage is then approximate. With n images, the coverage
        is at most n / (n + 1); for more, all sets contain all classes, and a warning says so.

        Args:
            X: The images.
            coverage: The probability, between 0 and 1.

        Returns:
            Booleans (n, classes), in the order of ``classes_``: whether the class is in the set.

        Raises:
            ValueError: If ``coverage`` is not between 0 and 1, if there is no calibration, or if the network has no
                finite answer for an image.

        Example:
            >>> from sklearn.datasets import load_digits
            >>> X, y = load_digits(n_class=2, return_X_y=True)
            >>> classifier = TIGraNetClassifier("SC[3,3]-DP[40]-S[6]-FC[20]", epochs=10, random_state=0)
            >>> classifier = classifier.fit(X[:200] / 16, y[:200]).calibrate(X[200:300] / 16, y[200:300])
            >>> classifier.predict_sets(X[300:] / 16, coverage=0.9).shape
            (60, 2)
        """
        check_is_fitted(self)
        check_coverage(coverage)
        calibration: ConformalCalibration | None = getattr(self, "calibration_", None)
        if calibration is None:  # also in an estimator that an earlier version has pickled
            raise ValueError(
                "label sets need images that fit has not trained on: call calibrate(X, y) with such images first"
            )
        if notice := calibration.notice(coverage):
            warnings.warn(notice, UserWarning, stacklevel=2)
        logits = require_finite(self._apply(canonical_logits(self.model_), self._images(X, reset=False)))
        return calibration.label_sets(logits, coverage).numpy()

    def transform(self, X: Any) -> np.ndarray:
        """Return the invariant features of each image, from the trained network.

        Args:
            X: The images.

        Returns:
            Features (n, features).

        Raises:
            ValueError: If a feature is not finite, because the values of an image are extreme.
        """
        return self._features(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # scikit-learn's checks train on tables whose columns are not pixels.
        tags.transformer_tags.preserves_dtype = []  # Features are float32.
        return tags
