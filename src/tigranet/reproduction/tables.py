"""Tables 2, 3 and 4 of the paper and an ablation, as data, together with the tables that are not in the paper."""

from typing import Any

from tigranet.reproduction.experiment import (
    C8,
    GLOBAL_AVERAGE,
    NO_JITTER,
    ROTATED_TRAINING,
    TORUS,
    Column,
    Experiment,
    TableSpec,
)
from tigranet.reproduction.oriented_tables import ORIENTED_TABLES
from tigranet.reproduction.pyramid_tables import PYRAMID_TABLES
from tigranet.workflows.paper_results import PAPER_RESULTS

MARGINS = (6, 12, 20)
"""Widths of a border of background in pixels. Filters and statistics of the paper's network reach 20 pixels far."""


def _paper_result(data: str, *columns: Column) -> tuple[str, ...]:
    """Return what the paper reports for TIGraNet."""
    return tuple(getattr(PAPER_RESULTS[data], column) for column in columns)


def _mnist_012(method: str, *reported: str, **changes: Any) -> Experiment:
    return Experiment(method, "mnist-012", "paper-small", reported, **changes)


def _eth80(data: str, reported: dict[str, str]) -> tuple[Experiment, ...]:
    """Return the experiments of Table 4 on ``data``, with the paper's results, and some that the paper leaves out."""

    def method(name: str, **changes: Any) -> Experiment:
        result = (reported[name],) if name in reported else ()
        return Experiment(name, data, "paper", result, **changes)

    return (
        method("STN"),
        method("ConvNet"),
        method("DeepScat"),
        method("HarmNet"),
        # Half-pixel jitter prepares for moved images. These test images are not moved, and it costs 3 points here.
        method("TIGraNet", **NO_JITTER),
        Experiment("TIGraNet", data, "paper"),
        Experiment(
            "TIGraNet",
            data,
            "paper",
            note="torus, no jitter",
            options={"boundary": "torus"},
            recipe={"jitter": 0.0},
        ),
        Experiment("ConvNet", data, "paper", **NO_JITTER),
        Experiment("HarmNet", data, "paper", **NO_JITTER),
        Experiment("ConvNet", data, "gap", note=GLOBAL_AVERAGE),
        Experiment("GroupCNN", data, "c8", note=C8),
    )


def _ablation(data: str, architecture: str, fewer_orders: str, unpooled: str) -> tuple[Experiment, ...]:
    """Return the default network, variants that differ in one choice, and last the paper's own choices together."""

    def variant(note: str, layers: str = architecture, **changes: Any) -> Experiment:
        return Experiment("TIGraNet", data, layers, note=note, **changes)

    return (
        Experiment("TIGraNet", data, architecture),
        variant("no jitter", recipe={"jitter": 0.0}),
        variant("statistics not standardised", without=("standardise",)),
        variant("the paper's start", options={"init": "paper"}),
        variant("torus", options={"boundary": "torus"}),
        variant("ties strict", options={"ties": "strict"}),
        variant("4 neighbours", options={"neighbours": 4}),
        variant("filters start over [0, 1.52]", options={"span": 1.52}),
        variant("orders up to 4", fewer_orders),
        variant("no pooling", unpooled),
        variant(
            "the paper's start, ties strict, no jitter",
            options={"init": "paper", "ties": "strict"},
            recipe={"jitter": 0.0},
        ),
    )


PAPER_TABLES = {
    "table2": TableSpec(
        "Table 2: MNIST-012, accuracy in per cent",
        ("train", "validation", "moved"),
        (
            _mnist_012("ConvNet", "99", "94", "78 ± 2.1", **ROTATED_TRAINING),
            _mnist_012("STN", "100", "97", "93 ± 0.97", **ROTATED_TRAINING),
            _mnist_012("ConvNet", "100", "100", "55 ± 5"),
            _mnist_012("STN", "100", "98", "50 ± 5"),
            _mnist_012("TIGraNet", *_paper_result("mnist-012", "train", "validation", "moved")),
            _mnist_012("TIGraNet", **NO_JITTER),
            Experiment("ConvNet", "mnist-012", "gap-small", note=GLOBAL_AVERAGE),
            Experiment("GroupCNN", "mnist-012", "c8-small", note=C8),
        ),
        extra_columns=("test", "nearest", "drop"),
    ),
    "table3": TableSpec(
        "Table 3: MNIST-rot and MNIST-trans, accuracy in per cent",
        ("moved",),
        (
            Experiment("ConvNet", "mnist-rot", "paper", ("44.3",)),
            Experiment("STN", "mnist-rot", "paper", ("44.5",)),
            Experiment("TIGraNet", "mnist-rot", "paper", _paper_result("mnist-rot", "moved")),
            Experiment("TIGraNet", "mnist-rot", "paper", **NO_JITTER),
            Experiment("ConvNet", "mnist-rot", "paper", **ROTATED_TRAINING),
            Experiment("STN", "mnist-rot", "paper", **ROTATED_TRAINING),
            Experiment("ConvNet", "mnist-rot", "gap", note=GLOBAL_AVERAGE),
            Experiment("GroupCNN", "mnist-rot", "c8", note=C8),
            Experiment("ConvNet", "mnist-trans", "paper", ("43.5",)),
            Experiment("STN", "mnist-trans", "paper", ("67.1",)),
            Experiment("TIGraNet", "mnist-trans", "paper", _paper_result("mnist-trans", "moved")),
            Experiment("TIGraNet", "mnist-trans", "paper", **TORUS),
            *(
                Experiment("TIGraNet", "mnist-trans", "paper", note=f"margin {margin}", options={"margin": margin})
                for margin in MARGINS
            ),
            Experiment("TIGraNet", "mnist-trans", "paper", **NO_JITTER),
            Experiment("ConvNet", "mnist-trans", "gap", note=GLOBAL_AVERAGE),
        ),
        extra_columns=("test", "nearest", "drop"),
    ),
    "table4": TableSpec(
        "Table 4: ETH-80, split by image as in the paper and by whole objects, accuracy in per cent",
        ("test",),
        _eth80(
            "eth80",
            {
                "STN": "45.1",
                "ConvNet": "80.1",
                "DeepScat": "87.3",
                "HarmNet": "94.0",
                "TIGraNet": _paper_result("eth80", "test")[0],
            },
        )
        + _eth80("eth80-objects", {}),
        extra_columns=("validation", "rotated"),
    ),
    "ablation": TableSpec(
        "Contribution of each choice in TIGraNet, accuracy in per cent",
        (),
        _ablation(
            "mnist-rot",
            "paper",
            fewer_orders="SC[10,4]-DP[600]-SC[20,4]-DP[300]-S[4]-FC[500]-FC[300]-FC[100]",
            unpooled="SC[10,4]-SC[20,4]-S[12]-FC[500]-FC[300]-FC[100]",
        )
        + _ablation(
            "mnist-012",
            "paper-small",
            fewer_orders="SC[3,3]-DP[300]-SC[6,3]-DP[100]-S[4]-FC[50]-FC[30]-FC[10]",
            unpooled="SC[3,3]-SC[6,3]-S[10]-FC[50]-FC[30]-FC[10]",
        ),
        extra_columns=("test", "moved", "nearest", "drop"),
    ),
}
"""By name. There is no augmentation except in the experiments that say so, and half-pixel jitter for all methods."""
TABLES = PAPER_TABLES | ORIENTED_TABLES | PYRAMID_TABLES
"""By name."""
