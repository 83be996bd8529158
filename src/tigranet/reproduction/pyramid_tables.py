"""Experiments with networks for larger images, which halve height and width between their layers.

All rows of a table are trained with one recipe, except where a row says so, so that they have the same budget.
"""

from typing import Any

from tigranet.choices import Precision
from tigranet.reproduction.architecture_variants import without_coarsening, without_residuals
from tigranet.reproduction.experiment import C8, ROTATED_TRAINING, Experiment, TableSpec
from tigranet.training import Recipe

SEEDS = 3
"""Number of runs of each experiment."""
PRECISION: Precision = "bf16"
"""Precision of matrix products in all tables."""
INCLUDES_VALIDATION = True
"""Whether the final tables, not the ablation, train on the validation images too, as the published results do."""
DISC: dict[str, Any] = {"window": "disc"}
"""Option of a TIGraNet that sees photographs through a disc."""
SEEN_THROUGH_DISC = "disc"
"""Note of experiments in which all networks see all images through the same disc."""
LAYERS_18 = "18 layers"
"""Note of the residual networks."""
PYRAMIDS = ("pyramid-small", "pyramid", "pyramid-large")
"""The presets for larger images, by size."""
PHOTOGRAPH_PYRAMIDS = ("pyramid-small", "pyramid-medium", "pyramid", "pyramid-large")
"""The presets that are trained on photographs, by size."""
PRODUCT_PYRAMID = "MC[64,3]-R[48]-R[48]-D-MC[128,3]-R[64]-R[64]-D-MC[256,3]-R[96]-R[96]-S[2]-FC[256]"
"""A network of the same shape as the presets, with residual blocks of products in place of group convolutions."""
SMALL_PRODUCT_PYRAMID = "MC[32,3]-R[24]-R[24]-D-MC[64,3]-R[32]-R[32]-S[2]-FC[96]"
"""A smaller one, for digits."""
DIGITS_PYRAMID = "LC[10,7]-GB[5]-GB[5]-D-GC[20,3]-GB[5]-GB[5]-MO[128]-S[0]"
"""A network of group convolutions with fewer than 300,000 parameters, for digits."""

SHARED_RECIPE: dict[str, Any] = {
    "learning_rate": 2e-3,
    "weight_decay": 0.05,
    "schedule": "one-cycle",
    "jitter": 0.5,
    "warp": 0.0,
    "smoothing": 0.1,
    "dropout": 0.3,
    "average": 0.999,
}
"""What the recipes of all tables have in common. They set every field whose default depends on the network."""
PHOTOGRAPH_RECIPE = SHARED_RECIPE | {
    "epochs": 50,
    "batch_size": 250,
    "shift": 0.125,
    "flip": True,
    "zoom": 0.2,
    "stretch": 0.2,
    "as_is": 0.1,
    "tone": 0.1,
    "tint": 0.025,
    "blur": 1.0,
    "cutout": 0.375,
}
"""Budget, regularisation and augmentation of all rows on CIFAR-10."""
PLANKTON_RECIPE = SHARED_RECIPE | {
    "shift": 0.1,
    "flip": True,
    "zoom": 0.2,
    "stretch": 0.15,
    "as_is": 0.25,
    "tone": 0.1,
    "tint": 0.0,
    "blur": 0.0,
    "cutout": 0.25,
}
"""Regularisation and augmentation of all rows on plankton. The budget depends on the number of images."""
PLANKTON_BUDGET: dict[str, Any] = {"epochs": 30, "batch_size": 250}
"""Budget of the rows that are trained on all images of plankton."""
PLANKTON_SIZES = (100, 1_000, 10_000, None)
"""Numbers of training images of the learning curve; None for all."""
ROTATED_DIGITS_RECIPE = SHARED_RECIPE | {
    "epochs": 60,
    "batch_size": 125,
    "turned": True,
    "shift": 0.0,
    "flip": False,
    "zoom": 0.1,
    "stretch": 0.1,
    "as_is": 0.25,
    "tone": 0.1,
    "tint": 0.0,
    "blur": 0.0,
    "cutout": 0.0,
}
"""Budget, regularisation and augmentation of all rows on rotated digits, which are rotated once more in training."""
ABLATION_EPOCHS = 20
"""Number of epochs of the ablation."""


def _final(method: str, data: str, architecture: str, **changes: Any) -> Experiment:
    """Return a row of a final table."""
    final: dict[str, Any] = {"precision": PRECISION, "includes_validation": INCLUDES_VALIDATION}
    return Experiment(method, data, architecture, **(final | changes))


def _photograph(method: str, architecture: str, note: str, turned: bool = False, **changes: Any) -> Experiment:
    notes = [
        note,
        *([ROTATED_TRAINING["note"]] if turned else []),
        *([SEEN_THROUGH_DISC] if "windowed" in changes else []),
    ]
    recipe = PHOTOGRAPH_RECIPE | {"turned": turned}
    return _final(method, "cifar10", architecture, note=", ".join(notes), recipe=recipe, **changes)


def _baselines_for_photographs(**changes: Any) -> tuple[Experiment, ...]:
    """Return the methods that the networks are compared with, all with the same changes."""
    return (
        _photograph("ResNet", "resnet18", LAYERS_18, **changes),
        _photograph("ResNet", "resnet18", LAYERS_18, turned=True, **changes),
        _photograph("GroupCNN", "c8-large", C8, **changes),
        _photograph("GMRResNet", "gmr-resnet18", LAYERS_18, **changes),
        _photograph("GMRResNet", "gmr-resnet18", f"{LAYERS_18}, no pooling", options={"pooling": False}, **changes),
    )


def _plankton(images: int | None) -> tuple[Experiment, ...]:
    """Return every method, trained on the same number of images of plankton."""
    default = None if images is None else Recipe.for_images(images)
    budget = PLANKTON_BUDGET if default is None else {"epochs": default.epochs, "batch_size": default.batch_size}

    def method(name: str, architecture: str, note: str, turned: bool = False) -> Experiment:
        recipe = PLANKTON_RECIPE | budget | {"turned": turned}
        return _final(name, "plankton", architecture, note=note, recipe=recipe, images=images, balanced_draw=False)

    rotated_training = f"{LAYERS_18}, {ROTATED_TRAINING['note']}"
    return (
        *(method("TIGraNet", preset, preset) for preset in (*PYRAMIDS, "oriented-large")),
        method("ResNet", "resnet18", LAYERS_18),
        method("ResNet", "resnet18", rotated_training, turned=True),
    )


def _rotated_digits(method: str, architecture: str, note: str) -> Experiment:
    return _final(method, "rotmnist-12k", architecture, note=note, recipe=ROTATED_DIGITS_RECIPE)


def _pyramid_ablation(preset: str = "pyramid") -> tuple[Experiment, ...]:
    """Return a network for photographs, and variants that differ in one part, measured on validation images."""

    def variant(
        note: str, architecture: str = preset, options: dict[str, Any] = DISC, recipe: dict[str, Any] | None = None
    ) -> Experiment:
        changed = PHOTOGRAPH_RECIPE | {"epochs": ABLATION_EPOCHS, "turned": False} | (recipe or {})
        measured: dict[str, Any] = {"precision": PRECISION, "on_validation": True}
        return Experiment("TIGraNet", "cifar10", architecture, note=note, options=options, recipe=changed, **measured)

    unregularised = {"weight_decay": 0.0, "dropout": 0.0, "smoothing": 0.0, "cutout": 0.0}
    undeformed = {"zoom": 0.0, "stretch": 0.0, "as_is": 0.0}
    return (
        variant(""),
        variant("no coarsening", without_coarsening(preset)),
        variant("not residual", without_residuals(preset)),
        variant("no window", options={"window": "none"}),
        variant("no weight decay", recipe={"weight_decay": 0.0}),
        variant("no dropout", recipe={"dropout": 0.0}),
        variant("labels not smoothed", recipe={"smoothing": 0.0}),
        variant("no cutout", recipe={"cutout": 0.0}),
        variant("no weight decay, no dropout, labels not smoothed, no cutout", recipe=unregularised),
        variant("no blur", recipe={"blur": 0.0}),
        variant("no zoom, no stretch", recipe=undeformed),
        variant("no tone, no tint", recipe={"tone": 0.0, "tint": 0.0}),
        variant("no shift", recipe={"shift": 0.0}),
        variant("not mirrored", recipe={"flip": False}),
        variant("weights not averaged", recipe={"average": 0.0}),
    )


PYRAMID_TABLES = {
    "photographs": TableSpec(
        "CIFAR-10 trained upright and tested rotated, accuracy in per cent",
        (),
        (
            *(_photograph("TIGraNet", preset, preset, options=DISC) for preset in PHOTOGRAPH_PYRAMIDS),
            _photograph("TIGraNet", PRODUCT_PYRAMID, "products", options=DISC),
            *_baselines_for_photographs(),
            *(_photograph("TIGraNet", preset, preset, windowed=True) for preset in PHOTOGRAPH_PYRAMIDS),
            *_baselines_for_photographs(windowed=True),
        ),
        extra_columns=("test", "protocol", "at_45", "at_90", "minutes"),
        seeds=SEEDS,
    ),
    "plankton": TableSpec(
        "Plankton, accuracy in per cent",
        (),
        tuple(experiment for images in PLANKTON_SIZES for experiment in _plankton(images)),
        extra_columns=("test", "rotated", "balanced", "log_loss", "minutes"),
        seeds=SEEDS,
    ),
    "rotmnist": TableSpec(
        "Rotated MNIST, 12,000 training and 50,000 test images",
        (),
        (
            _rotated_digits("TIGraNet", DIGITS_PYRAMID, "pyramid of 2 levels"),
            *(_rotated_digits("TIGraNet", preset, preset) for preset in ("pyramid-small", "pyramid")),
            _rotated_digits("TIGraNet", SMALL_PRODUCT_PYRAMID, "products"),
            _rotated_digits("TIGraNet", "oriented-large", "oriented-large"),
            _rotated_digits("GroupCNN", "c8", C8),
            _rotated_digits("ResNet", "resnet18", LAYERS_18),
        ),
        extra_columns=("error", "minutes"),
        seeds=SEEDS,
    ),
    "pyramid-ablation": TableSpec(
        "Contribution of each part of a network for photographs, accuracy in per cent",
        (),
        _pyramid_ablation(),
        extra_columns=("test", "protocol", "at_45", "at_90", "minutes"),
        seeds=SEEDS,
    ),
}
"""By name. Networks are trained on upright images, except in the experiments that say otherwise and on rotated digits,
which are rotated already."""
