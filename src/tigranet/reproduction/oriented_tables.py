"""Experiments that are not in the paper: the oriented networks, an ablation of them, and few training images."""

from typing import Any

from tigranet.architecture import DP, GP, MC, MP, OP, Architecture, S
from tigranet.notation import Layer
from tigranet.reproduction.architecture_variants import replace_layers
from tigranet.reproduction.experiment import C4, C8, ROTATED_TRAINING, Experiment, TableSpec
from tigranet.training import Recipe
from tigranet.training.recipe import default_augmentation

TRAINING_SIZES = (50, 100, 500, 1_000, 5_000)
"""Numbers of training images in the table ``few``."""


def _without_first_block(architecture: str = "oriented") -> str:
    """Remove the first block of an architecture. A block ends with its products.

    >>> _without_first_block("MC[8,2]-OP[4]-MC[8,2]-OP[4]-MC[9,2]-S[2]")
    'MC[8,2]-OP[4]-MC[9,2]-S[2]'
    """
    layers = Architecture.parse(architecture).layers
    end = next(number for number, layer in enumerate(layers, start=1) if isinstance(layer, OP))
    return str(Architecture(layers[end:]))


def _smooth_once_more(op: OP) -> tuple[Layer, ...]:
    return (OP(op.pairs, op.smoothings + 1),)


def _oriented_ablation(data: str) -> tuple[Experiment, ...]:
    """Return the oriented network, and variants that differ in one part; all train a quarter of the usual epochs."""

    def variant(
        note: str, architecture: str = "oriented", recipe: dict[str, Any] | None = None, **changes: Any
    ) -> Experiment:
        return Experiment("TIGraNet", data, architecture, note=note, recipe={"epochs": 6} | (recipe or {}), **changes)

    return (
        variant(""),
        variant("no products", replace_layers(OP, lambda op: ())),
        variant("GP in place of OP", replace_layers(OP, lambda op: (GP(op.pairs, op.smoothings),))),
        variant("MP in place of OP", replace_layers(OP, lambda op: (MP(op.pairs, op.smoothings),))),
        variant("smoothed", replace_layers(OP, _smooth_once_more)),
        variant(
            "smoothed, degree 3",
            replace_layers(OP, _smooth_once_more, replace_layers(MC, lambda mc: (MC(mc.maps, 3),))),
        ),
        variant("degree 2", replace_layers(MC, lambda mc: (MC(mc.maps, 2),))),
        variant("two blocks", _without_first_block()),
        variant(
            "half the maps",
            replace_layers(
                OP,
                lambda op: (OP(op.pairs // 2, op.smoothings),),
                replace_layers(MC, lambda mc: (MC(mc.maps // 2, mc.degree),)),
            ),
        ),
        variant("statistics of orders 0 and 1", replace_layers(S, lambda s: (S(1),))),
        variant("statistics of order 0", replace_layers(S, lambda s: (S(0),))),
        variant("pooled", replace_layers(S, lambda s: (DP(300), s))),  # the paper's last pooling keeps 300 nodes too
        variant("no jitter", recipe={"jitter": 0.0}),
        variant("no warp", recipe={"warp": 0.0}),
        variant("no warp, no stretch", recipe={"warp": 0.0, "stretch": 0.0}),
        variant("not deformed", recipe={"warp": 0.0, "stretch": 0.0, "zoom": 0.0}),
        variant("all images deformed", recipe={"as_is": 0.0}),
        variant("labels not smoothed", recipe={"smoothing": 0.0}),
        variant("torus", options={"boundary": "torus"}),
        variant("diagonal edges of weight 1", options={"diagonal": 1.0}),
    )


def _few_images(data: str, images: int) -> tuple[Experiment, ...]:
    """Return every method, trained on the same number of images, for as many steps, with the same augmentation."""
    shared_recipe = default_augmentation(images) | {"epochs": Recipe.for_images(images).epochs}

    def method(name: str, architecture: str, note: str = "", recipe: dict[str, Any] | None = None) -> Experiment:
        return Experiment(name, data, architecture, note=note, images=images, recipe=shared_recipe | (recipe or {}))

    return (
        method("TIGraNet", "oriented", "oriented"),
        method("TIGraNet", "oriented-small", "oriented-small"),
        method("TIGraNet", "paper", "paper"),
        method("ConvNet", "paper"),
        method("ConvNet", "paper", **ROTATED_TRAINING),
        method("STN", "paper"),
        method("STN", "paper", **ROTATED_TRAINING),
        method("GroupCNN", "c4", C4),
        method("GroupCNN", "c8", C8),
    )


def _oriented(data: str, architecture: str, note: str = "", **changes: Any) -> Experiment:
    return Experiment("TIGraNet", data, architecture, note=", ".join(filter(None, (architecture, note))), **changes)


ORIENTED_TABLES = {
    "oriented": TableSpec(
        "The oriented network, accuracy in per cent",
        (),
        (
            _oriented("mnist-rot", "oriented-small"),
            _oriented("mnist-rot", "oriented"),
            _oriented("mnist-rot", "oriented-large"),
            _oriented("mnist-rot10", "oriented"),
            _oriented("mnist-trans", "oriented", "torus", options={"boundary": "torus"}),
            _oriented("mnist-rot-trans", "oriented", "torus", options={"boundary": "torus"}),
            _oriented("mnist-012", "oriented-small"),
            *(
                _oriented(data, "oriented", "60 epochs", recipe={"epochs": 60})
                for data in ("eth80", "eth80-color", "eth80-objects")
            ),
            _oriented("neu-steel", "oriented-small"),
        ),
        extra_columns=("test", "moved", "nearest", "drop", "rotated"),
    ),
    "oriented-ablation": TableSpec(
        "Contribution of each part of the oriented network, accuracy in per cent",
        (),
        _oriented_ablation("mnist-rot"),
        extra_columns=("test", "moved", "nearest", "drop"),
        seeds=3,
    ),
    "few": TableSpec(
        "MNIST-rot with few training images, accuracy in per cent",
        (),
        tuple(experiment for images in TRAINING_SIZES for experiment in _few_images("mnist-rot", images)),
        extra_columns=("test", "moved", "nearest", "drop"),
    ),
}
"""By name. Training images are rotated only in the experiments that say so. Training images of oriented networks are
deformed, as is their default, except in the experiments that say otherwise."""
