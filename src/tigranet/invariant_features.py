"""Invariant features of images as a scikit-learn transformer, for other classifiers."""

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state

from tigranet.architecture import Architecture
from tigranet.choices import Boundary, WindowOption
from tigranet.feature_network import feature_architecture, is_saved_network, load_feature_network, untrained_network
from tigranet.image_estimator import ImageEstimator
from tigranet.training.process_state import seeded


class InvariantFeatures(TransformerMixin, ImageEstimator):
    """Invariant features of a network that is not trained on the images, for a random forest, an SVM or a search.

    Images are read as in :class:`tigranet.TIGraNetClassifier`.

    Args:
        architecture: A preset or layers in the paper's notation, for a network with random weights; or the folder or
            the name of a saved network, such as ``oriented-eth80``, whose boundary, window and margin are kept.
            ``auto`` are the layers that were best in ``results/quick-features.csv``. Networks with LC layers, such as
            these, estimate the moments of their maps from some images of ``fit``.
        boundary: What lies beyond the border of the pixel grid: ``free``, or ``torus``, for exact invariance to shifts.
        window: The same as for :class:`tigranet.TIGraNetClassifier`.
        margin: The same as for :class:`tigranet.TIGraNetClassifier`.
        image_shape: (H, W) or (H, W, C), where ``X`` is (n, features) and images are not square.
        random_state: Seed or generator of the random weights that mix the maps.

    Attributes:
        model_: The :class:`tigranet.TIGraNet`.
        image_shape_: Shape of the images of ``fit``.
        n_features_in_: Number of values of each image.
        scale_: What integers of 32 and 64 bits are divided by, or None to leave them unchanged.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(n_class=3, return_X_y=True)
        >>> InvariantFeatures().fit_transform(X / 16).shape
        (537, 512)
        >>> InvariantFeatures("paper-mnist-012").fit_transform(X / 16).shape
        (537, 132)
    """

    def __init__(
        self,
        architecture: str | Architecture = "auto",
        *,
        boundary: Boundary = "free",
        window: WindowOption = "auto",
        margin: int = 0,
        image_shape: tuple[int, ...] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.architecture = architecture
        self.boundary = boundary
        self.window = window
        self.margin = margin
        self.image_shape = image_shape
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "InvariantFeatures":
        """Remember the format of the images, and draw the random weights or load the network.

        Args:
            X: The images.
            y: Ignored.

        Returns:
            This estimator.

        Raises:
            ValueError: If the images or the values of parameters are not valid.
            TypeError: If a parameter has a wrong type.
        """
        with self._restore_on_error():
            self._check_parameters()
            images = self._images(X, reset=True)
            name = feature_architecture(images) if self.architecture == "auto" else self.architecture
            if isinstance(name, str) and is_saved_network(name):
                self.model_ = load_feature_network(name, images)
            else:
                with seeded(int(check_random_state(self.random_state).randint(2**31 - 1))):
                    self.model_ = untrained_network(images=images, **self._network_options(name, images))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the invariant features of each image.

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
        tags.transformer_tags.preserves_dtype = []  # Features are float32.
        return tags
