"""TIGraNet as scikit-learn knows estimators: fit, predict, predict_proba, transform."""

from math import isqrt, prod
from typing import Any

import numpy as np
import torch
from rich.console import Console
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor

from tigranet.architecture import Architecture
from tigranet.data.labelled import Labelled
from tigranet.graphs.grid import Boundary
from tigranet.model import TIGraNet
from tigranet.training import Recipe, fit

BATCH = 256


class _ReadsImages(BaseEstimator):
    """Turns what scikit-learn passes around into images for a network.

    ``X`` is (n, H, W), (n, H, W, C) or (n, features): the pixels of ``image_shape``, if that is given, else of a square
    image where their number is a square, else of a row. Whole numbers of 8 and 16 bits are divided by the largest of
    their type, so that images are in [0, 1]; all others are taken as they are.
    """

    image_shape: tuple[int, ...] | None
    image_shape_: tuple[int, ...]
    n_features_in_: int

    def _images(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        checked = validate_data(self, X, y, reset=reset, allow_nd=True, ensure_2d=False, dtype="numeric")
        pixels, labels = checked if isinstance(checked, tuple) else (checked, None)
        if pixels.ndim < 2:
            raise ValueError(f"X is (n, H, W), (n, H, W, C) or (n, features), got {pixels.ndim}D. Reshape your data.")
        if reset:
            self.image_shape_ = self._shape_of(pixels)
            self.n_features_in_ = prod(self.image_shape_)
        shape, count = self.image_shape_, prod(pixels.shape[1:])
        if count != self.n_features_in_:
            wanted = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise ValueError(f"X has {count} features, but {wanted}: images of shape {shape}")
        scale = np.iinfo(pixels.dtype).max if pixels.dtype.kind in "iu" and pixels.dtype.itemsize < 4 else 1
        images = torch.from_numpy(np.asarray(pixels, dtype=np.float32).reshape(len(pixels), *shape) / np.float32(scale))
        images = images.unsqueeze(1) if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
        return (images, labels) if labels is not None else images

    def _shape_of(self, pixels: np.ndarray) -> tuple[int, ...]:
        if pixels.ndim > 2:
            if pixels.ndim > 4:
                raise ValueError(f"X is (n, H, W), (n, H, W, C) or (n, features), got shape {pixels.shape}")
            return pixels.shape[1:]
        count = pixels.shape[1]
        if self.image_shape is not None:
            shape = tuple(self.image_shape)
            if len(shape) not in (2, 3) or prod(shape) != count:
                raise ValueError(f"image_shape {shape} has {prod(shape)} pixels, X has n_features={count}")
            return shape
        if count < 2:
            raise ValueError(f"an image has at least 2 pixels, got X with n_features={count}")
        side = isqrt(count)
        return (side, side) if side * side == count and side > 1 else (1, count)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def _statistics(net: TIGraNet, images: Tensor) -> np.ndarray:
    with torch.inference_mode():
        return torch.cat([net.features(batch) for batch in images.split(BATCH)]).numpy()


class TIGraNetClassifier(ClassifierMixin, TransformerMixin, _ReadsImages):
    """A TIGraNet classifier for arrays of images: trained as they are, it answers at any angle.

    Args:
        architecture: a preset, of which ``paper-small`` and ``paper`` are the paper's, or its notation.
        boundary: ``free``, or ``torus`` for exact shifts.
        image_shape: (H, W) or (H, W, C), where X is (n, features) and not of square images.
        epochs, batch_size, learning_rate: by default chosen by the number of images, see :class:`Recipe`.
        jitter: the sub-pixel shift of training images.
        random_state: the same gives the same classifier.
        verbose: whether to draw a progress bar.

    Attributes: ``classes_``, ``model_`` (the trained :class:`TIGraNet`), ``image_shape_``, ``n_features_in_``.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> classifier = TIGraNetClassifier("SC[3,3]-DP[40]-S[6]-FC[20]", epochs=10, random_state=0).fit(X / 16, y)
    >>> bool(classifier.score(X / 16, y) > 0.9)
    True
    """

    def __init__(
        self,
        architecture: str | Architecture = "oriented-small",
        *,
        boundary: Boundary = "free",
        image_shape: tuple[int, ...] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        jitter: float = 0.5,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.architecture = architecture
        self.boundary = boundary
        self.image_shape = image_shape
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.jitter = jitter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TIGraNetClassifier":
        """Train on images ``X`` with labels ``y``; an image of weight 2 counts as much as two."""
        images, y = self._images(X, reset=True, y=y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"a classifier needs at least 2 classes, got one class: {self.classes_[0]!r}")
        weights = None
        if sample_weight is not None:
            weights = torch.from_numpy(
                _check_sample_weight(sample_weight, images.numpy(), dtype=np.float32, ensure_non_negative=True)
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        given = {"epochs": self.epochs, "batch_size": self.batch_size, "learning_rate": self.learning_rate}
        chosen = {name: value for name, value in given.items() if value is not None}
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            net = TIGraNet(self.architecture, len(self.classes_), images.shape[1], boundary=self.boundary)
        recipe = Recipe.for_network(net, len(images), **chosen, jitter=self.jitter, seed=seed)
        data = Labelled(images, torch.from_numpy(labels.astype(np.int64)), weights)
        fit(net, data, None, recipe, Console(stderr=True, highlight=False) if self.verbose else None)
        self.model_ = net.cpu()
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        images = self._images(X, reset=False)
        with torch.inference_mode():
            logits = torch.cat([self.model_(batch) for batch in images.split(BATCH)])
        return logits.double().softmax(1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each image."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def transform(self, X: Any) -> np.ndarray:
        """The invariant statistics of each image, (n, statistics)."""
        check_is_fitted(self)
        return _statistics(self.model_, self._images(X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the columns of a table are no image
        tags.transformer_tags.preserves_dtype = []  # statistics are float32
        return tags


class InvariantFeatures(TransformerMixin, _ReadsImages):
    """The invariant statistics of the paper's starting filters, untrained, for a random forest or an SVM.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> InvariantFeatures().fit_transform(X / 16).shape
    (537, 132)
    """

    def __init__(
        self,
        architecture: str | Architecture = "paper-small",
        *,
        boundary: Boundary = "free",
        image_shape: tuple[int, ...] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.architecture = architecture
        self.boundary = boundary
        self.image_shape = image_shape
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "InvariantFeatures":
        """Look at the shape of the images, and draw how maps are mixed."""
        images = self._images(X, reset=True)
        with torch.random.fork_rng():
            torch.manual_seed(int(check_random_state(self.random_state).randint(2**31 - 1)))
            self.model_ = TIGraNet(self.architecture, 1, images.shape[1], boundary=self.boundary).eval()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The statistics of each image, (n, statistics)."""
        check_is_fitted(self)
        return _statistics(self.model_, self._images(X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # statistics are float32
        return tags
