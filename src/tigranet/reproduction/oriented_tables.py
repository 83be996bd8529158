"""The rows of what is not in the paper, as data: the oriented network, its parts, and few training images."""

from collections.abc import Callable
from typing import Any, TypeVar

from tigranet.architecture import DP, GP, MC, MP, OP, Architecture, S
from tigranet.notation import Layer
from tigranet.reproduction.experiment import C4, C8, TURNED, Row, TableSpec
from tigranet.training import Recipe
from tigranet.training.recipe import not_by_heart

L = TypeVar("L", bound=Layer)
FEW = (50, 100, 500, 1_000, 5_000)
"""Training images."""


def _each(kind: type[L], change: Callable[[L], tuple[Layer, ...]], of: str = "oriented") -> str:
    """The layers ``of`` an architecture, with what ``change`` makes of each one of a ``kind``.

    >>> _each(OP, lambda op: (), "MC[8,2]-OP[4]-MC[8,2]-OP[4]-S[2]")
    'MC[8,2]-MC[8,2]-S[2]'
    """
    layers = Architecture.parse(of).layers
    changed = [change(layer) if isinstance(layer, kind) else (layer,) for layer in layers]
    return str(Architecture(tuple(layer for some in changed for layer in some)))


def _without_the_first_block(of: str = "oriented") -> str:
    """A block ends with its products.

    >>> _without_the_first_block("MC[8,2]-OP[4]-MC[8,2]-OP[4]-MC[9,2]-S[2]")
    'MC[8,2]-OP[4]-MC[9,2]-S[2]'
    """
    layers = Architecture.parse(of).layers
    end = next(number for number, layer in enumerate(layers, start=1) if isinstance(layer, OP))
    return str(Architecture(layers[end:]))


def _smoothed(op: OP) -> tuple[Layer, ...]:
    return (OP(op.pairs, op.smoothings + 1),)


def _ablation(data: str) -> tuple[Row, ...]:
    """The oriented network as it is, and with one part changed in each row; all in a quarter of the usual epochs."""

    def row(note: str, architecture: str = "oriented", recipe: dict[str, Any] | None = None, **changed: Any) -> Row:
        return Row("TIGraNet", data, architecture, note=note, recipe={"epochs": 6} | (recipe or {}), **changed)

    return (
        row(""),
        row("no products", _each(OP, lambda op: ())),
        row("GP in place of OP", _each(OP, lambda op: (GP(op.pairs, op.smoothings),))),
        row("MP in place of OP", _each(OP, lambda op: (MP(op.pairs, op.smoothings),))),
        row("smoothed", _each(OP, _smoothed)),
        row("smoothed, degree 3", _each(OP, _smoothed, _each(MC, lambda mc: (MC(mc.maps, 3),)))),
        row("degree 2", _each(MC, lambda mc: (MC(mc.maps, 2),))),
        row("two blocks", _without_the_first_block()),
        row(
            "half the maps",
            _each(
                OP, lambda op: (OP(op.pairs // 2, op.smoothings),), _each(MC, lambda mc: (MC(mc.maps // 2, mc.degree),))
            ),
        ),
        row("statistics of orders 0 and 1", _each(S, lambda s: (S(1),))),
        row("statistics of order 0", _each(S, lambda s: (S(0),))),
        row("pooled", _each(S, lambda s: (DP(300), s))),  # as many nodes as the paper's last pooling leaves
        row("no jitter", recipe={"jitter": 0.0}),
        row("no warp", recipe={"warp": 0.0}),
        row("no warp, no stretch", recipe={"warp": 0.0, "stretch": 0.0}),
        row("not deformed", recipe={"warp": 0.0, "stretch": 0.0, "zoom": 0.0}),
        row("all images deformed", recipe={"as_is": 0.0}),
        row("labels not smoothed", recipe={"smoothing": 0.0}),
        row("torus", options={"boundary": "torus"}),
        row("diagonal edges of weight 1", options={"diagonal": 1.0}),
    )


def _few(data: str, images: int) -> tuple[Row, ...]:
    """Each method, trained on so many images, all in as many steps, with images deformed and labels smoothed alike."""
    alike = not_by_heart(images) | {"epochs": Recipe.for_images(images).epochs}

    def row(method: str, architecture: str, note: str = "", recipe: dict[str, Any] | None = None) -> Row:
        return Row(method, data, architecture, note=note, images=images, recipe=alike | (recipe or {}))

    return (
        row("TIGraNet", "oriented", "oriented"),
        row("TIGraNet", "oriented-small", "oriented-small"),
        row("TIGraNet", "paper", "paper"),
        row("ConvNet", "paper"),
        row("ConvNet", "paper", **TURNED),
        row("STN", "paper"),
        row("STN", "paper", **TURNED),
        row("GroupCNN", "c4", C4),
        row("GroupCNN", "c8", C8),
    )


BEYOND = {
    "oriented": TableSpec(
        "The oriented network, accuracy in per cent",
        (),
        (
            Row("TIGraNet", "mnist-rot", "oriented-small", note="oriented-small"),
            Row("TIGraNet", "mnist-rot", "oriented", note="oriented"),
            Row("TIGraNet", "mnist-rot", "oriented-large", note="oriented-large"),
            Row("TIGraNet", "mnist-rot10", "oriented", note="oriented"),
            Row("TIGraNet", "mnist-trans", "oriented", note="oriented, torus", options={"boundary": "torus"}),
            Row("TIGraNet", "mnist-rot-trans", "oriented", note="oriented, torus", options={"boundary": "torus"}),
            Row("TIGraNet", "mnist-012", "oriented-small", note="oriented-small"),
            *(
                Row("TIGraNet", data, "oriented", note="oriented, 60 epochs", recipe={"epochs": 60})
                for data in ("eth80", "eth80-color", "eth80-objects")
            ),
            Row("TIGraNet", "neu-steel", "oriented-small", note="oriented-small"),
        ),
        also=("test", "moved", "nearest", "drop", "rotated"),
    ),
    "oriented-ablation": TableSpec(
        "What each part of the oriented network brings, accuracy in per cent",
        (),
        _ablation("mnist-rot"),
        also=("test", "moved", "nearest", "drop"),
        seeds=3,
    ),
    "few": TableSpec(
        "MNIST-rot learned of few images, accuracy in per cent",
        (),
        tuple(row for images in FEW for row in _few("mnist-rot", images)),
        also=("test", "moved", "nearest", "drop"),
    ),
}
"""Training images are turned only where a row says so; deformed they are but where a row says not, as is usual for
oriented networks."""
