"""The training parameters that users may set: one description for the command line and the estimator.

This module loads neither PyTorch nor Lightning, so that ``tigranet train --help`` starts fast. The values are checked
by :class:`tigranet.training.Recipe`, whose fields have the same names.
"""

from dataclasses import dataclass
from typing import Any

from tigranet.choices import Keep, Schedule


@dataclass(frozen=True)
class RecipeParameter:
    """One training parameter, as it is described to users."""

    name: str
    """The name of the field of :class:`tigranet.training.Recipe`."""
    type: Any
    """``int``, ``float``, ``bool``, or the ``Literal`` of the allowed names."""
    help: str
    """What it does, in one sentence."""
    default: str
    """The default value, described in words, because most defaults depend on the data and on the network."""


_PARAMETERS = (
    RecipeParameter(
        "epochs",
        int,
        "Number of passes over the training images.",
        "fewer for more images",
    ),
    RecipeParameter(
        "batch_size",
        int,
        "Batch size.",
        "50, or 250 above 10,000 images",
    ),
    RecipeParameter(
        "learning_rate",
        float,
        "Highest learning rate.",
        "0.01, or 0.003 for large networks and those with MC layers; 0.002 with LC layers",
    ),
    RecipeParameter(
        "weight_decay",
        float,
        "Decoupled weight decay (AdamW) of all weights except biases and normalisations.",
        "0, which is Adam, or 0.05 with LC layers",
    ),
    RecipeParameter(
        "schedule",
        Schedule,
        "Learning-rate schedule: up and down again, or down along a cosine.",
        "one-cycle",
    ),
    RecipeParameter(
        "jitter",
        float,
        "Random sub-pixel shift of each training image, in pixels along each axis.",
        "up to 0.5",
    ),
    RecipeParameter(
        "shift",
        float,
        "Maximum random shift of each training image by whole pixels, as a fraction of the image size.",
        "0",
    ),
    RecipeParameter(
        "flip",
        bool,
        "Mirror half of the training images, for data in which a mirror image has the same class.",
        "no",
    ),
    RecipeParameter(
        "zoom",
        float,
        "Maximum random change of the scale of each training image, as a fraction of the image size.",
        "0, or 0.2 with MC or LC layers",
    ),
    RecipeParameter(
        "stretch",
        float,
        "Maximum random stretch along a random axis, as a fraction of the image size.",
        "0, or 0.15 with MC or LC layers",
    ),
    RecipeParameter(
        "warp",
        float,
        "Strength of a random smooth deformation, as a fraction of the image size.",
        "0, or 0.035 with MC layers; 0.05 up to 200 images",
    ),
    RecipeParameter(
        "tone",
        float,
        "Strength of a random change of brightness and contrast.",
        "0, or 0.5 with MC or LC layers up to 200 images",
    ),
    RecipeParameter(
        "tint",
        float,
        "Maximum random change of the brightness of each channel, where the whole range is 1.",
        "0",
    ),
    RecipeParameter(
        "blur",
        float,
        "Maximum weight of a smoothed copy, which is blended with half of the training images.",
        "0",
    ),
    RecipeParameter(
        "cutout",
        float,
        "Side length of a random square that is replaced by the mean of the image, as a fraction of the image size.",
        "0, or 0.25 with LC layers above 1,000 images",
    ),
    RecipeParameter(
        "smoothing",
        float,
        "Label smoothing: the fraction of each label that is spread over all classes.",
        "0, or 0.05 with MC layers; 0.1 with LC layers",
    ),
    RecipeParameter(
        "dropout",
        float,
        "Probability with which a feature is set to zero before the classifier.",
        "0, or 0.3 with LC layers",
    ),
    RecipeParameter(
        "average",
        float,
        "Decay per step of a moving average of the weights, such as 0.999, which is kept instead of the weights.",
        "0, no average",
    ),
    RecipeParameter(
        "accumulate",
        int,
        "Number of parts of a batch that are computed one after the other, to save memory; each part is normalised "
        "by itself.",
        "1",
    ),
    RecipeParameter(
        "balanced",
        bool,
        "Give all classes the same weight in the loss, regardless of their number of images.",
        "no",
    ),
    RecipeParameter(
        "keep",
        Keep,
        "Keep the weights of the last step, or the best ones: those of the lowest validation loss.",
        "last",
    ),
    RecipeParameter(
        "patience",
        int,
        "Stop early when the validation loss has not fallen for this many epochs, and keep the best weights.",
        "train for all epochs",
    ),
)

RECIPE_PARAMETERS: dict[str, RecipeParameter] = {parameter.name: parameter for parameter in _PARAMETERS}
"""The parameters by name, in the order in which they are listed to users. MC layers are the fully-mixed
convolutions of the oriented networks, and LC layers the lifting convolutions with which steerable networks begin."""
