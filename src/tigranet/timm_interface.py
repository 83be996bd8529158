"""The names of timm for the parts of a network, so that code written for timm's models works with it."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from tigranet.model_limits import MAX_CLASSES, check_integer


def number_of_channels(in_maps: int, in_channels: int | None, in_chans: int | None) -> int:
    """Return the number of channels of the images, which has three names.

    Args:
        in_maps: Number of channels in the words of the paper. 1, the default, stands for a number that was not given.
        in_channels: The same in the words of PyTorch, or None.
        in_chans: The same in the words of timm, or None.

    Returns:
        The number that was given, unchecked.

    Raises:
        TypeError: If two different numbers were given.

    Example:
        >>> number_of_channels(1, 3, None), number_of_channels(4, None, None)
        (3, 4)
    """
    arguments = {"in_maps": None if in_maps == 1 else in_maps, "in_channels": in_channels, "in_chans": in_chans}
    given = {name: value for name, value in arguments.items() if value is not None}
    numbers = list(given.values())
    if any(number != numbers[0] for number in numbers):
        raise TypeError(
            f"expected one number of channels, got {', '.join(f'{name}={value!r}' for name, value in given.items())}: "
            "these are names of the same argument, give one of them"
        )
    return numbers[0] if numbers else in_maps


def initialise_as_in_the_paper(module: nn.Module) -> None:
    """Draw all parameters of fully-connected layers uniformly from [-1, 1].

    Args:
        module: The layers.
    """
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -1, 1)


class TimmInterface(nn.Module):
    """The methods that timm's models share, for a network of features and fully-connected layers.

    ``net(images)`` is ``net.forward_head(net.forward_features(images))``. The number of features is ``num_features``.
    """

    config: dict[str, Any]
    num_classes: int
    class_names: tuple[str, ...]
    classifier: nn.Sequential
    dropout: nn.Module
    standardise: nn.Module

    def features(self, images: Tensor, laplacian: Any = None) -> Tensor:
        """Compute the features; the network defines how.

        Args:
            images: Images or signals, as for ``forward``.
            laplacian: The graph of the signals, as for ``forward``.

        Returns:
            The features, (batch, features).
        """
        raise NotImplementedError

    def forward_features(
        self, images: Float[Tensor, "batch in_maps *pixels"], laplacian: Any = None
    ) -> Float[Tensor, "batch features"]:
        """Compute the invariant features. timm's name of ``features``.

        In contrast to most models of timm, the features have no pixels left to pool.

        Args:
            images: Images or signals, as for ``forward``.
            laplacian: The graph of the signals, as for ``forward``.

        Returns:
            ``num_features`` numbers per image.
        """
        return self.features(images, laplacian)

    def forward_head(
        self, features: Float[Tensor, "batch features"], pre_logits: bool = False
    ) -> Float[Tensor, "batch outputs"]:
        """Compute the logits from the features.

        Args:
            features: The result of :meth:`forward_features`.
            pre_logits: Whether to return the input of the last layer instead.

        Returns:
            One logit per class, or the input of the last layer.
        """
        layers = self.classifier[:-1] if pre_logits else self.classifier
        return layers(self.dropout(self.standardise(features)))

    def get_classifier(self) -> nn.Module:
        """Return the last layer, which has one output per class."""
        return self.classifier[-1]

    def reset_classifier(self, num_classes: int) -> None:
        """Replace the last layer, in place, by a new one with random weights for other classes.

        The names of the classes are then their numbers. ``with_classes`` returns a copy instead, can name the classes,
        and keeps what was learned about those that stay.

        Args:
            num_classes: Number of classes, at least 1. For features without a classifier, use :meth:`forward_features`.

        Raises:
            ValueError: If the number is out of range.
            TypeError: If it is not an integer.
        """
        num_classes = check_integer("num_classes", num_classes, MAX_CLASSES)
        last = self.classifier[-1]
        assert isinstance(last, nn.Linear)
        new = nn.Linear(last.in_features, num_classes, device=last.weight.device, dtype=last.weight.dtype)
        if self.config["init"] == "paper":
            initialise_as_in_the_paper(new)
        self.classifier[-1] = new.train(last.training)
        self.num_classes = num_classes
        self.class_names = tuple(map(str, range(num_classes)))
        self.config |= {"num_classes": num_classes, "class_names": None}
