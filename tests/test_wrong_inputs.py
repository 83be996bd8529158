"""A table of wrong inputs, each with the message that a user gets for it."""

import json
import re

import numpy as np
import pytest
import torch

from tigranet import Architecture, DynamicPool, GridLaplacian, SparseLaplacian, SpectralConv, Statistics, TIGraNet
from tigranet.data import LabelledImages
from tigranet.layers import MixedConv, OrientedProduct
from tigranet.training import Recipe, fit

NET = "SC[2,2]-DP[9]-S[2]"
RING = np.roll(np.eye(4), 1, 0) + np.roll(np.eye(4), -1, 0)


def ring(i, j, value, both=False):
    a = RING.copy()
    a[i, j] = value
    if both:
        a[j, i] = value
    return a


def net(**arguments):
    return TIGraNet(NET, **({"num_classes": 2} | arguments))


def saved(folder, **replaced):
    """A saved model with some files replaced by others' bytes, or removed."""
    net().save_pretrained(folder)
    for name, content in replaced.items():
        file = folder / {"config": "config.json", "weights": "model.safetensors"}[name]
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return TIGraNet.from_pretrained(folder)


def whole_weights(folder, **arguments):
    net(**arguments).save_pretrained(folder / "other")
    return (folder / "other" / "model.safetensors").read_bytes()


WRONG = {
    # graphs
    "grid without rows": (
        lambda _: GridLaplacian(0, 5),
        "a grid has rows and columns, and at least 2 pixels, got 0 x 5",
    ),
    "grid of one pixel": (
        lambda _: GridLaplacian(1, 1),
        "a grid has rows and columns, and at least 2 pixels, got 1 x 1",
    ),
    "six neighbours": (lambda _: GridLaplacian(4, 4, 6), "neighbours is 4 or 8, got 6"),
    "unknown boundary": (lambda _: GridLaplacian(4, 4, boundary="wrap"), "boundary is 'free' or 'torus', got 'wrap'"),
    "negative diagonal": (lambda _: GridLaplacian(4, 4, diagonal=-1.0), "positive edge weight, got -1.0"),
    "asymmetric": (
        lambda _: SparseLaplacian(ring(0, 1, 2.0)),
        "a_ij = a_ji, got a_ij - a_ji of 1 at (0, 1), -1 at (1, 0)",
    ),
    "negative weight": (lambda _: SparseLaplacian(ring(0, 1, -2.0, both=True)), "not negative, got -2 at (0, 1)"),
    "NaN weight": (lambda _: SparseLaplacian(ring(0, 1, np.nan, both=True)), "finite, got nan at (0, 1)"),
    "infinite weight": (lambda _: SparseLaplacian(ring(2, 3, np.inf, both=True)), "finite, got inf at (2, 3)"),
    "self-loop": (
        lambda _: SparseLaplacian(ring(1, 1, 1.0)),
        "joins a node to itself, got 1 at (1, 1): set the diagonal",
    ),
    "isolated node": (lambda _: SparseLaplacian(np.pad(RING, (0, 1))), "1 isolated, [4]: leave them out"),
    "no edges at all": (lambda _: SparseLaplacian(np.zeros((3, 3))), "3 isolated"),
    "no nodes": (lambda _: SparseLaplacian(np.zeros((0, 0))), "square and not empty, got shape (0, 0)"),
    "not square": (lambda _: SparseLaplacian(np.zeros((3, 4))), "square and not empty, got shape (3, 4)"),
    "upper triangle": (lambda _: SparseLaplacian(np.triu(RING)), "a_ij = a_ji, got a_ij - a_ji of 1 at (0, 1)"),
    "edges in one direction": (
        lambda _: SparseLaplacian.from_edges(torch.tensor([[0, 1], [1, 2]])),
        "give each edge in both directions",
    ),
    "edges of wrong shape": (
        lambda _: SparseLaplacian.from_edges(torch.zeros(3, 2, dtype=torch.int64)),
        "whole numbers (2, edges), got torch.int64 (3, 2)",
    ),
    "edges beyond the last node": (
        lambda _: SparseLaplacian.from_edges(torch.tensor([[0, 7], [7, 0]]), num_nodes=4),
        "nodes are 0 to 3, got 0 to 7",
    ),
    "no edges given": (
        lambda _: SparseLaplacian.from_edges(torch.zeros(2, 0, dtype=torch.int64)),
        "a graph has at least one edge",
    ),
    "a weight too few": (
        lambda _: SparseLaplacian.from_edges(torch.tensor([[0, 1], [1, 0]]), torch.ones(1)),
        "one weight an edge: wanted shape (2,), got (1,)",
    ),
    "empty mask": (lambda _: SparseLaplacian.from_mask(torch.zeros(3, 3, dtype=torch.bool)), "got an empty one"),
    "mask of numbers": (lambda _: SparseLaplacian.from_mask(torch.ones(3, 3)), "a mask is bool (height, width), got"),
    "mask of six neighbours": (
        lambda _: SparseLaplacian.from_mask(torch.ones(3, 3, dtype=torch.bool), neighbours=6),
        "neighbours is 4 or 8, got 6",
    ),
    "mask with a lone pixel": (
        lambda _: SparseLaplacian.from_mask(torch.tensor([[1, 1, 0, 1]], dtype=torch.bool)),
        "1 isolated, [2]",
    ),
    "signal of wrong length": (
        lambda _: GridLaplacian(4, 4)(torch.rand(2, 15)),
        "reads 16 values in the last axis, got shape (2, 15)",
    ),
    "signal of whole numbers": (lambda _: GridLaplacian(2, 2)(torch.arange(4)), "float32 or float64, got torch.int64"),
    "signal in half precision": (
        lambda _: GridLaplacian(2, 2)(torch.rand(4).bfloat16()),
        "float32 or float64, got torch.bfloat16: convert it with .float(), or use autocast",
    ),
    # layers
    "convolution of other maps": (
        lambda _: SpectralConv(3, 4, 2)(torch.rand(1, 2, 16), GridLaplacian(4, 4)),
        "reads signals (batch, 3, nodes), got shape (1, 2, 16)",
    ),
    "convolution of no maps": (lambda _: SpectralConv(0, 4, 2), "in_maps is at least 1, got 0"),
    "no filters": (lambda _: SpectralConv(1, 0, 2), "got 0 of degree 2 over 2.0"),
    "no span": (lambda _: SpectralConv(1, 3, 2, span=0.0), "over a span in (0, 2], got 3 of degree 2 over 0.0"),
    "pooling of a flat signal": (lambda _: DynamicPool(3)(torch.rand(2, 9)), "(batch, maps, nodes), got shape (2, 9)"),
    "statistics of other active nodes": (
        lambda _: Statistics(2)(torch.rand(1, 2, 9), GridLaplacian(3, 3), torch.ones(1, 1, 9, dtype=torch.bool)),
        "got shape (1, 2, 9) with active nodes (1, 1, 9)",
    ),
    "mixed convolution of no maps": (lambda _: MixedConv(0, 4, 2), "at least 1 map to at least 1 map, of degree"),
    "mixed convolution of other maps": (
        lambda _: MixedConv(3, 4, 2)(torch.rand(1, 2, 16), GridLaplacian(4, 4)),
        "MixedConv(\n  3, 4, degree=2",
    ),
    "products of no pairs": (
        lambda _: OrientedProduct(3, 0),
        "at least 1 map and 1 pair of mixtures, smoothed 0 times or more, got 3, 0 and 0",
    ),
    "products of other maps": (
        lambda _: OrientedProduct(3, 1)(torch.rand(1, 2, 16), GridLaplacian(4, 4)),
        "reads signals (batch, 3, nodes), got shape (1, 2, 16)",
    ),
    "oriented products on a graph": (
        lambda _: TIGraNet("MC[2,1]-OP[2]-S[1]", 2)(torch.rand(1, 1, 4), SparseLaplacian(RING)),
        "needs image gradients, and SparseLaplacian(num_nodes=4, num_edges=4) has none: use GradientProduct, GP",
    ),
    "pooling of nothing": (lambda _: DynamicPool(0), "num_active is at least 1, got 0"),
    "pooling by an unknown rule": (lambda _: DynamicPool(3, "drop"), "ties is 'keep' or 'strict', got 'drop'"),
    "negative order": (lambda _: Statistics(-1), "order is at least 0, got -1"),
    # architectures (more in test_architecture.py)
    "layer with a number missing": (
        lambda _: Architecture.parse("SC[10]-DP[3]"),
        "SC takes 2 numbers (maps, degree), got 1 in layer 1 ('SC[10]') of 'SC[10]-DP[3]'",
    ),
    "unknown preset": (lambda _: TIGraNet("paper-big", 3), "'paper-big' is neither a preset nor layers such as"),
    "no statistics": (
        lambda _: TIGraNet("SC[3,3]-FC[9]", 3),
        "wanted SC or MC or OP or MP or GP or DP or S in layer 2 ('FC[9]') of 'SC[3,3]-FC[9]'",
    ),
    # networks
    "no classes": (lambda _: net(num_classes=0), "num_classes and in_maps are at least 1, got 0 and 1"),
    "a class without a name": (lambda _: net(class_names=["a"]), "one name a class, got 1 names for 2 classes"),
    "unknown start": (lambda _: net(init="xavier"), "init is 'default' or 'paper', got 'xavier'"),
    "network on an unknown boundary": (lambda _: net(boundary="wrap"), "boundary is 'free' or 'torus', got 'wrap'"),
    "network of negative diagonals": (lambda _: net(diagonal=-1.0), "positive edge weight, got -1.0"),
    "image without a batch": (lambda _: net()(torch.rand(1, 8, 8)), "(batch, 1, height, width), got shape (1, 8, 8)"),
    "image of three channels": (
        lambda _: net()(torch.rand(2, 3, 8, 8)),
        "(batch, 1, height, width), got shape (2, 3, 8, 8)",
    ),
    "image of bytes": (
        lambda _: net()(torch.zeros(1, 1, 8, 8, dtype=torch.uint8)),
        "floating point in [0, 1], got torch.uint8: use .float() / 255",
    ),
    "image in another precision": (
        lambda _: net()(torch.rand(1, 1, 8, 8).double()),
        "this network computes in torch.float32, got images in torch.float64",
    ),
    "unknown rule for ties": (
        lambda _: TIGraNet("SC[1,1]-S[1]", 2, ties="drop"),
        "ties is 'keep' or 'strict', got 'drop'",
    ),
    "image of one pixel": (
        lambda _: net()(torch.rand(1, 1, 1, 1)),
        "a grid has rows and columns, and at least 2 pixels, got 1 x 1",
    ),
    "image where a signal is due": (
        lambda _: net()(torch.rand(1, 1, 4, 4), GridLaplacian(4, 4)),
        "(batch, 1, nodes), got shape (1, 1, 4, 4)",
    ),
    "signal on another graph": (
        lambda _: net()(torch.rand(1, 1, 15), GridLaplacian(4, 4)),
        "16 values in the last axis",
    ),
    # files
    "no such folder": (lambda tmp: TIGraNet.from_pretrained(tmp / "none"), "there is none at"),
    "a file for a folder": (
        lambda tmp: TIGraNet.from_pretrained(__file__),
        "a saved model is a folder with config.json",
    ),
    "a name with no owner": (lambda tmp: TIGraNet.from_pretrained("oriented"), "there is none at 'oriented'"),
    "no such folder, with a slash": (lambda tmp: TIGraNet.from_pretrained("model-that-is-not/"), "there is none at"),
    "configuration of no names": (
        lambda tmp: saved(tmp, config=[1]),
        "is not a configuration of TIGraNet: it holds no names",
    ),
    "configuration of wrong types": (
        lambda tmp: saved(tmp, config={"architecture": 5, "num_classes": "2"}),
        "is not a configuration of TIGraNet",
    ),
    "no configuration": (lambda tmp: saved(tmp, config=None), "has no config.json"),
    "no weights": (lambda tmp: saved(tmp, weights=None), "has no model.safetensors"),
    "configuration cut short": (lambda tmp: saved(tmp, config=b'{"architecture": "SC['), "config.json' is not JSON"),
    "configuration of another library": (
        lambda tmp: saved(tmp, config={"hidden_size": 768, "num_classes": 2, "architecture": NET}),
        "is not a configuration of TIGraNet: unknown ['hidden_size']",
    ),
    "configuration without classes": (lambda tmp: saved(tmp, config={"architecture": NET}), "missing ['num_classes']"),
    "weights cut short": (lambda tmp: saved(tmp, weights=whole_weights(tmp)[:-100]), "is not a whole safetensors file"),
    "empty weights": (lambda tmp: saved(tmp, weights=b""), "is not a whole safetensors file"),
    "weights of another network": (
        lambda tmp: saved(tmp, weights=whole_weights(tmp, num_classes=5)),
        "is not the configuration that model.safetensors was saved with",
    ),
    # training
    "NaN in the images": (
        lambda _: fit(
            net(), *[LabelledImages(torch.full((4, 1, 8, 8), torch.nan), torch.zeros(4).long())] * 2, Recipe(epochs=1)
        ),
        "the training images hold NaN or infinity",
    ),
    "no epochs": (lambda _: Recipe(epochs=0), "epochs is at least 1, got 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_gets_its_message(case, tmp_path, as_a_user):
    do, message = WRONG[case]
    with pytest.raises((ValueError, TypeError, OSError), match=re.escape(message)):
        do(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".") or path.suffix == ".tmp"]


def test_the_table_is_long_enough():
    assert len(WRONG) >= 25
