"""The common part of the scikit-learn estimators: how they read arrays of images and name their features."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data
from torch import Tensor

from tigranet.architecture import Architecture
from tigranet.choices import Boundary, WindowOption
from tigranet.choose_window import choose_window
from tigranet.data.batch_size import limit_batch_size
from tigranet.data.image_arrays import ImageFormat
from tigranet.data.value_range import ValueRangeWarning, is_standardised, outside_unit_range
from tigranet.evaluation.batched_inference import apply_in_batches, require_finite
from tigranet.evaluation.file_predictions import feature_names
from tigranet.model import TIGraNet

BATCH_SIZE = 256
"""Batch size of predictions and features of small images."""


class ImageEstimator(BaseEstimator):
    """An estimator whose ``X`` is an array of images.

    ``X`` is (n, H, W), (n, H, W, C) or (n, features). The network works with images of any height and width, so images
    (n, H, W) and (n, H, W, C) may have another size after ``fit``, but not another number of channels. See
    :func:`tigranet.data.image_arrays.find_max_value` for how integers are brought to [0, 1]; after ``fit``, integers of
    32 and 64 bits are divided by the value that ``fit`` divided by.
    """

    architecture: str | Architecture
    boundary: Boundary
    window: WindowOption
    margin: int
    image_shape: tuple[int, ...] | None
    image_shape_: tuple[int, ...]
    model_: TIGraNet
    n_features_in_: int
    scale_: int | None

    def _images(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        """Return ``X`` as a tensor of images, with the labels if ``y`` is passed; ``reset`` is True in ``fit`` only."""
        if isinstance(X, np.ndarray) and X.dtype.kind == "c":  # shorter than the message of scikit-learn
            raise ValueError(f"Complex data not supported: expected real pixels, got X of {X.dtype}")
        validated = validate_data(self, X, y, reset=reset, allow_nd=True, ensure_2d=False, dtype="numeric")
        pixels, labels = validated if isinstance(validated, tuple) else (validated, None)
        if pixels.ndim not in (2, 3, 4):
            raise ValueError(
                f"expected X of shape (n, H, W), (n, H, W, C) or (n, features), got shape {pixels.shape}. "
                "Reshape your data."
            )
        if (count := prod(pixels.shape[1:])) < 2 and (reset or pixels.ndim > 2):
            raise ValueError(f"expected images of at least 2 pixels, got X with n_features={count}")
        if reset:
            image_format = ImageFormat.of(pixels, self.image_shape)
            self.image_shape_, self.scale_, self.n_features_in_ = image_format.shape, image_format.max_value, count
        self._warn_of_range(pixels, reset)
        images = ImageFormat(self.image_shape_, self.scale_).to_tensor(pixels, type(self).__name__)
        return (images, labels) if labels is not None else images

    def _warn_of_range(self, pixels: np.ndarray, reset: bool) -> None:
        """Warn of floating-point images outside [0, 1].

        In ``fit``, images that look standardised are accepted, since the network can be trained on them. After ``fit``
        on images in [0, 1], no others are. After ``fit`` on other images, the range of new ones is not checked.
        """
        if (not reset and self.scale_ is None) or not (values := outside_unit_range(pixels)):
            return
        name = type(self).__name__
        if not reset:
            message = f"{name} was fitted on images in [0, 1], got X with values {values}: scale X as the images of fit"
        elif is_standardised(pixels):
            return
        else:
            message = (
                f"{name} expects images in [0, 1], got floating-point X with values {values}, which are used as they "
                "are: divide X by its largest possible value, such as 255, or pass integers of 8 or 16 bits"
            )
        warnings.warn(message, ValueRangeWarning, stacklevel=4)

    def _check_parameters(self) -> None:
        """Check the types of the parameters. Their values are checked where they are used."""
        if not isinstance(self.architecture, str | Architecture):
            raise TypeError(
                "architecture must be a preset, such as 'paper-small', or layers, such as 'SC[3,3]-DP[300]-S[10]', "
                f"got {self.architecture!r}"
            )
        shape = self.image_shape
        if shape is not None and not (
            isinstance(shape, tuple | list)
            and len(shape) in (2, 3)
            and all(isinstance(side, Integral) and side > 0 for side in shape)
        ):
            raise ValueError(
                "image_shape must be (height, width) or (height, width, channels) in positive integers, or None, "
                f"got {shape!r}"
            )

    def _network_options(self, architecture: str | Architecture, images: Tensor) -> dict[str, Any]:
        """Return the arguments of a new network for the images of ``fit``, except its number of classes."""
        layers = Architecture.parse(architecture) if isinstance(architecture, str) else architecture
        window = choose_window(self.window, layers, images).window
        return {"architecture": layers, "boundary": self.boundary, "window": window, "margin": self.margin}

    def _features(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return require_finite(self._apply(self.model_.features, self._images(X, reset=False))).numpy()

    def _apply(self, function: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        """Apply a function that uses the network to images, in batches."""
        batches = images.split(limit_batch_size(BATCH_SIZE, *images.shape[2:]))
        return apply_in_batches(self.model_, batches, function)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features that ``transform`` returns.

        With them, ``set_output(transform="pandas")`` makes ``transform`` return a table with named columns.

        Args:
            input_features: Names of the columns of ``X``. They are only compared with those of ``fit``.

        Returns:
            One name per feature: the map, and which of its statistics, such as ``map0_mean0``.
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.asarray(feature_names(self.model_), dtype=object)

    @contextmanager
    def _restore_on_error(self) -> Iterator[None]:
        """Restore all attributes if the block raises an error."""
        attributes = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(attributes)
            raise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags
