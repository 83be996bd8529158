"""TIGraNet as scikit-learn knows estimators: fit, predict, predict_proba, transform."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import isqrt, prod
from numbers import Integral, Real
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
from tigranet.data.dataset import LabelledImages
from tigranet.data.value_range import WIDE, full_scale
from tigranet.graphs.grid import Boundary
from tigranet.model import TIGraNet
from tigranet.training import Recipe, fit

BATCH = 256
MOST_CHANNELS = 4
"""Red, green, blue and alpha: with more behind and 1, 3 or 4 in front, channels are taken to come first."""


class _ReadsImages(BaseEstimator):
    """Turns what scikit-learn passes around into images for a network.

    ``X`` is (n, H, W), (n, H, W, C) or (n, features): the pixels of ``image_shape``, if that is given, else of a square
    image where their number is a square, else of a row. A network reads images of any height and width, so those of
    (n, H, W) and (n, H, W, C) need not be as in ``fit``; their channels are.

    Whole numbers are divided so that images are in [0, 1]: those of 8 and 16 bits by the largest of their type. Wider
    ones ``fit`` divides by 1, 255 or 65535, the first that is not below the largest of them; after ``fit`` they are
    divided by what it divided by. Floating-point numbers are taken as they are.
    """

    architecture: str | Architecture
    image_shape: tuple[int, ...] | None
    image_shape_: tuple[int, ...]
    n_features_in_: int
    scale_: int | None
    """What ``fit`` divided by; None if it saw floating-point numbers beyond [0, 1]: then wide ones are as they are."""

    def _images(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        checked = validate_data(self, X, y, reset=reset, allow_nd=True, ensure_2d=False, dtype="numeric")
        pixels, labels = checked if isinstance(checked, tuple) else (checked, None)
        if pixels.ndim not in (2, 3, 4):
            wanted = "X is (n, H, W), (n, H, W, C) or (n, features)"
            raise ValueError(f"{wanted}, got shape {pixels.shape}. Reshape your data.")
        if (count := prod(pixels.shape[1:])) < 2 and (reset or pixels.ndim > 2):
            raise ValueError(f"an image has at least 2 pixels, got X with n_features={count}")
        if reset:
            shape = self._first_shape(pixels)
            self.image_shape_, self.n_features_in_, self.scale_ = shape, count, _scale_of(pixels)
        else:
            shape = self._next_shape(pixels)
        scale = np.float32(self._scale(pixels) or 1)
        images = torch.from_numpy(np.asarray(pixels, dtype=np.float32).reshape(len(pixels), *shape) / scale)
        images = images.unsqueeze(1) if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
        return (images, labels) if labels is not None else images

    def _first_shape(self, pixels: np.ndarray) -> tuple[int, ...]:
        """The shape of the images to fit on."""
        if pixels.ndim > 2:
            _check_channels_come_last(pixels.shape[1:], "X")
            return pixels.shape[1:]
        count = pixels.shape[1]
        if self.image_shape is not None:
            shape = tuple(self.image_shape)
            if prod(shape) != count:
                raise ValueError(f"image_shape {shape} has {prod(shape)} pixels, X has n_features={count}")
            _check_channels_come_last(shape, f"X.reshape{(-1, *shape)}")
            return shape
        side = isqrt(count)
        return (side, side) if side * side == count and side > 1 else (1, count)

    def _next_shape(self, pixels: np.ndarray) -> tuple[int, ...]:
        """The shape of images after ``fit``: their own, where they have one, with as many channels as before."""
        name, fitted = type(self).__name__, self.image_shape_
        if pixels.ndim == 2:
            if (count := pixels.shape[1]) != self.n_features_in_:
                wanted = f"{name} is expecting {self.n_features_in_} features as input"
                raise ValueError(f"X has {count} features, but {wanted}: images of shape {fitted}")
            return fitted
        shape = pixels.shape[1:]
        channels, wanted_channels = (sides[2] if len(sides) == 3 else 1 for sides in (shape, fitted))
        if channels != wanted_channels:
            _check_channels_come_last(shape, "X")
            wanted = f"{name} is fitted on images of shape {fitted}, channels: {wanted_channels}"
            raise ValueError(f"{wanted}; got X of shape {pixels.shape}, channels: {channels}")
        return shape

    def _scale(self, pixels: np.ndarray) -> int | None:
        if not _is_wide(pixels):
            return _scale_of(pixels)
        if self.scale_ is not None and (largest := _largest(pixels)) > self.scale_:
            fitted = f"{type(self).__name__} is fitted on images in [0, {self.scale_}]"
            raise ValueError(f"{fitted}, got whole numbers up to {largest}: divide X as those were")
        return self.scale_

    def _check_parameters(self) -> None:
        """Whether parameters are of the type they should be; their values are looked at where they are used."""
        if not isinstance(self.architecture, str | Architecture):
            wanted = "architecture is a preset, such as 'paper-small', or layers, such as 'SC[3,3]-DP[300]-S[10]'"
            raise TypeError(f"{wanted}, got {self.architecture!r}")
        shape = self.image_shape
        if shape is not None and not (
            isinstance(shape, tuple | list)
            and len(shape) in (2, 3)
            and all(isinstance(side, Integral) and side > 0 for side in shape)
        ):
            wanted = "image_shape is (height, width) or (height, width, channels) in whole numbers, or None"
            raise ValueError(f"{wanted}, got {shape!r}")

    @contextmanager
    def _kept_on_failure(self) -> Iterator[None]:
        """If what is done here fails, the estimator is as before."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def _is_wide(pixels: np.ndarray) -> bool:
    """Whether these are whole numbers of 32 or 64 bits: NumPy's own, and those of lists."""
    return pixels.dtype.kind in "iu" and pixels.dtype.itemsize >= 4


def _largest(pixels: np.ndarray) -> int:
    """The largest of whole numbers; below zero, -1 counts as 0 and -128 as 127, as in the types that hold them."""
    return max(int(pixels.max()), ~int(pixels.min()))


def _scale_of(pixels: np.ndarray) -> int | None:
    """What puts pixels in [0, 1], if whole; None where they are floating point and not in it.

    >>> _scale_of(np.uint8([3])), _scale_of(np.int64([0, 1])), _scale_of(np.int64([0, 3])), _scale_of(np.array([0.5]))
    (255, 1, 255, 1)
    """
    if pixels.dtype.kind in "iu":
        largest = _largest(pixels)
        if _is_wide(pixels) and largest > WIDE[-1]:
            raise ValueError(f"whole numbers are of at most 16 bits, got {largest} in X: divide X to [0, 1]")
        return full_scale(pixels.dtype, 0, largest)
    return 1 if pixels.min() >= 0 and pixels.max() <= 1 else None


def _check_channels_come_last(shape: tuple[int, ...], array: str) -> None:
    if len(shape) == 3 and shape[2] > MOST_CHANNELS and shape[0] in (1, 3, 4):
        first, last = f"{shape[0]}x{shape[1]} images of {shape[2]} channels", f"{array}.transpose(0, 2, 3, 1)"
        raise ValueError(f"channels come last: {last}; got images of shape {shape}, which would be {first}")


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

    Images (n, H, W) or (n, H, W, C), channels last, may be of another height and width after ``fit``. Whole numbers of
    8 and 16 bits are divided by the largest of their type; wider ones, as in lists, by 1, 255 or 65535, the first that
    is not below the largest that ``fit`` saw, or by what it divided narrow ones by, and larger ones are refused;
    floating-point numbers are taken as they are.

    Attributes: ``classes_``, ``model_`` (the trained :class:`TIGraNet`), ``image_shape_``, ``n_features_in_`` and
    ``scale_`` (what whole numbers of 32 and 64 bits are divided by, or None for nothing, after floating-point numbers
    beyond [0, 1]). A ``fit`` that fails leaves them as they were.

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
        with self._kept_on_failure():
            self._check_parameters()
            images, y = self._images(X, reset=True, y=y)
            check_classification_targets(y)
            self.classes_, labels = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(f"a classifier needs at least 2 classes, got one class: {self.classes_.tolist()[0]!r}")
            weights = None
            if sample_weight is not None:
                weights = torch.from_numpy(
                    _check_sample_weight(sample_weight, images.numpy(), dtype=np.float32, ensure_non_negative=True)
                )
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            given = {name: getattr(self, name) for name in ("epochs", "batch_size", "learning_rate", "jitter")}
            chosen = {  # searches draw NumPy's numbers, and training takes Python's
                name: int(value) if isinstance(value, Integral) else float(value)
                for name, value in given.items()
                if value is not None
            }
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                net = TIGraNet(self.architecture, len(self.classes_), images.shape[1], boundary=self.boundary)
            recipe = Recipe.for_network(net, len(images), **chosen, seed=seed)
            data = LabelledImages(images, torch.from_numpy(labels.astype(np.int64)), weights)
            fit(net, data, None, recipe, Console(stderr=True, highlight=False) if self.verbose else None)
            self.model_ = net.cpu()
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, kind, wanted in (
            ("epochs", Integral, "a whole number or None"),
            ("batch_size", Integral, "a whole number or None"),
            ("learning_rate", Real, "a number or None"),
            ("jitter", Real, "a number"),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind) and (value is not None or name == "jitter"):
                raise TypeError(f"{name} is {wanted}, got {value!r}")

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

    It reads images as :class:`TIGraNetClassifier` does.

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
        with self._kept_on_failure():
            self._check_parameters()
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
