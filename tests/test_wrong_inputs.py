"""A table of wrong inputs, each with the type of its error and the values that the message must contain."""

import json

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
    """The adjacency matrix of a ring of four nodes, with one entry replaced."""
    a = RING.copy()
    a[i, j] = value
    if both:
        a[j, i] = value
    return a


def net(**arguments):
    return TIGraNet(NET, **({"num_classes": 2} | arguments))


def saved(folder, **replaced):
    """Load a saved model after some of its files were replaced by other bytes, or removed."""
    net().save_pretrained(folder)
    for name, content in replaced.items():
        file = folder / {"config": "config.json", "weights": "model.safetensors"}[name]
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return TIGraNet.from_pretrained(folder)


def weights(folder, **arguments):
    """The bytes of the weights of a network."""
    net(**arguments).save_pretrained(folder / "other")
    return (folder / "other" / "model.safetensors").read_bytes()


DATA = LabelledImages(torch.rand(4, 1, 8, 8), torch.arange(4) % 2)
WRONG_INPUTS = {
    # graphs
    "grid without rows": (lambda _: GridLaplacian(0, 5), ValueError, ["0", "5"]),
    "grid of one pixel": (lambda _: GridLaplacian(1, 1), ValueError, ["2 pixels", "1"]),
    "six neighbours": (lambda _: GridLaplacian(4, 4, 6), ValueError, ["neighbours", "4", "8", "6"]),
    "unknown boundary": (
        lambda _: GridLaplacian(4, 4, boundary="wrap"),
        ValueError,
        ["boundary", "'free'", "'torus'", "'wrap'"],
    ),
    "negative diagonal": (lambda _: GridLaplacian(4, 4, diagonal=-1.0), ValueError, ["positive", "-1.0"]),
    "asymmetric": (lambda _: SparseLaplacian(ring(0, 1, 2.0)), ValueError, ["1 at (0, 1)", "-1 at (1, 0)"]),
    "negative weight": (lambda _: SparseLaplacian(ring(0, 1, -2.0, both=True)), ValueError, ["-2 at (0, 1)"]),
    "NaN weight": (lambda _: SparseLaplacian(ring(0, 1, np.nan, both=True)), ValueError, ["nan at (0, 1)"]),
    "infinite weight": (lambda _: SparseLaplacian(ring(2, 3, np.inf, both=True)), ValueError, ["inf at (2, 3)"]),
    "self-loop": (lambda _: SparseLaplacian(ring(1, 1, 1.0)), ValueError, ["1 at (1, 1)", "diagonal"]),
    "isolated node": (lambda _: SparseLaplacian(np.pad(RING, (0, 1))), ValueError, ["isolated", "[4]"]),
    "no edges at all": (lambda _: SparseLaplacian(np.zeros((3, 3))), ValueError, ["3", "isolated"]),
    "no nodes": (lambda _: SparseLaplacian(np.zeros((0, 0))), ValueError, ["(0, 0)"]),
    "not square": (lambda _: SparseLaplacian(np.zeros((3, 4))), ValueError, ["square", "(3, 4)"]),
    "upper triangle": (lambda _: SparseLaplacian(np.triu(RING)), ValueError, ["1 at (0, 1)"]),
    "edges in one direction": (
        lambda _: SparseLaplacian.from_edges(torch.tensor([[0, 1], [1, 2]])),
        ValueError,
        ["both directions"],
    ),
    "edges of wrong shape": (
        lambda _: SparseLaplacian.from_edges(torch.zeros(3, 2, dtype=torch.int64)),
        ValueError,
        ["(2, edges)", "(3, 2)"],
    ),
    "edges beyond the last node": (
        lambda _: SparseLaplacian.from_edges(torch.tensor([[0, 7], [7, 0]]), num_nodes=4),
        ValueError,
        ["3", "7"],
    ),
    "no edges given": (
        lambda _: SparseLaplacian.from_edges(torch.zeros(2, 0, dtype=torch.int64)),
        ValueError,
        ["at least one edge"],
    ),
    "a weight too few": (
        lambda _: SparseLaplacian.from_edges(torch.tensor([[0, 1], [1, 0]]), torch.ones(1)),
        ValueError,
        ["weight", "(2,)", "(1,)"],
    ),
    "empty mask": (
        lambda _: SparseLaplacian.from_mask(torch.zeros(3, 3, dtype=torch.bool)),
        ValueError,
        ["mask", "empty"],
    ),
    "mask of numbers": (
        lambda _: SparseLaplacian.from_mask(torch.ones(3, 3)),
        ValueError,
        ["(height, width)", "torch.float32"],
    ),
    "mask of six neighbours": (
        lambda _: SparseLaplacian.from_mask(torch.ones(3, 3, dtype=torch.bool), neighbours=6),
        ValueError,
        ["neighbours", "4", "8", "6"],
    ),
    "mask with a lone pixel": (
        lambda _: SparseLaplacian.from_mask(torch.tensor([[1, 1, 0, 1]], dtype=torch.bool)),
        ValueError,
        ["isolated", "[2]"],
    ),
    "signal of wrong length": (lambda _: GridLaplacian(4, 4)(torch.rand(2, 15)), ValueError, ["16", "(2, 15)"]),
    "signal of whole numbers": (
        lambda _: GridLaplacian(2, 2)(torch.arange(4)),
        TypeError,
        ["float32", "float64", "torch.int64"],
    ),
    "signal in half precision": (
        lambda _: GridLaplacian(2, 2)(torch.rand(4).bfloat16()),
        TypeError,
        ["torch.bfloat16", ".float()", "autocast"],
    ),
    # layers
    "convolution of other maps": (
        lambda _: SpectralConv(3, 4, 2)(torch.rand(1, 2, 16), GridLaplacian(4, 4)),
        ValueError,
        ["(batch, 3, nodes)", "(1, 2, 16)"],
    ),
    "convolution of no maps": (lambda _: SpectralConv(0, 4, 2), ValueError, ["in_maps", "1", "0"]),
    "no filters": (lambda _: SpectralConv(1, 0, 2), ValueError, ["0", "degree 2", "2.0"]),
    "no span": (lambda _: SpectralConv(1, 3, 2, span=0.0), ValueError, ["span", "(0, 2]", "0.0"]),
    "pooling of a flat signal": (
        lambda _: DynamicPool(3)(torch.rand(2, 9)),
        ValueError,
        ["(batch, maps, nodes)", "(2, 9)"],
    ),
    "statistics of other active nodes": (
        lambda _: Statistics(2)(torch.rand(1, 2, 9), GridLaplacian(3, 3), torch.ones(1, 1, 9, dtype=torch.bool)),
        ValueError,
        ["(1, 2, 9)", "(1, 1, 9)"],
    ),
    "mixed convolution of no maps": (lambda _: MixedConv(0, 4, 2), ValueError, ["at least 1", "0"]),
    "mixed convolution of other maps": (
        lambda _: MixedConv(3, 4, 2)(torch.rand(1, 2, 16), GridLaplacian(4, 4)),
        ValueError,
        ["MixedConv(", "(1, 2, 16)"],
    ),
    "products of no pairs": (lambda _: OrientedProduct(3, 0), ValueError, ["at least 1", "3", "0"]),
    "products of other maps": (
        lambda _: OrientedProduct(3, 1)(torch.rand(1, 2, 16), GridLaplacian(4, 4)),
        ValueError,
        ["(batch, 3, nodes)", "(1, 2, 16)"],
    ),
    "oriented products on a graph": (
        lambda _: TIGraNet("MC[2,1]-OP[2]-S[1]", 2)(torch.rand(1, 1, 4), SparseLaplacian(RING)),
        TypeError,
        ["gradient", "SparseLaplacian(num_nodes=4, num_edges=4)", "GradientProduct", "GP"],
    ),
    "pooling of nothing": (lambda _: DynamicPool(0), ValueError, ["num_active", "1", "0"]),
    "pooling by an unknown rule": (lambda _: DynamicPool(3, "drop"), ValueError, ["'keep'", "'strict'", "'drop'"]),
    "negative order": (lambda _: Statistics(-1), ValueError, ["order", "0", "-1"]),
    # architectures (more in test_architecture.py)
    "layer with a number missing": (
        lambda _: Architecture.parse("SC[10]-DP[3]"),
        ValueError,
        ["SC", "2 numbers", "maps, degree", "1", "layer 1", "'SC[10]'", "'SC[10]-DP[3]'"],
    ),
    "unknown preset": (lambda _: TIGraNet("paper-big", 3), ValueError, ["'paper-big'", "preset"]),
    "no statistics": (
        lambda _: TIGraNet("SC[3,3]-FC[9]", 3),
        ValueError,
        ["S", "layer 2", "'FC[9]'", "'SC[3,3]-FC[9]'"],
    ),
    # networks
    "no classes": (lambda _: net(num_classes=0), ValueError, ["num_classes", "1", "0"]),
    "a class without a name": (lambda _: net(class_names=["a"]), ValueError, ["1 name", "2 classes"]),
    "unknown start": (lambda _: net(init="xavier"), ValueError, ["init", "'default'", "'paper'", "'xavier'"]),
    "network on an unknown boundary": (lambda _: net(boundary="wrap"), ValueError, ["'free'", "'torus'", "'wrap'"]),
    "network of negative diagonals": (lambda _: net(diagonal=-1.0), ValueError, ["positive", "-1.0"]),
    "image without a batch": (
        lambda _: net()(torch.rand(1, 8, 8)),
        ValueError,
        ["(batch, 1, height, width)", "(1, 8, 8)"],
    ),
    "image of three channels": (
        lambda _: net()(torch.rand(2, 3, 8, 8)),
        ValueError,
        ["(batch, 1, height, width)", "(2, 3, 8, 8)"],
    ),
    "image of bytes": (
        lambda _: net()(torch.zeros(1, 1, 8, 8, dtype=torch.uint8)),
        TypeError,
        ["[0, 1]", "torch.uint8", ".float() / 255"],
    ),
    "image in another precision": (
        lambda _: net()(torch.rand(1, 1, 8, 8).double()),
        TypeError,
        ["torch.float32", "torch.float64"],
    ),
    "unknown rule for ties": (
        lambda _: TIGraNet("SC[1,1]-S[1]", 2, ties="drop"),
        ValueError,
        ["ties", "'keep'", "'strict'", "'drop'"],
    ),
    "image of one pixel": (lambda _: net()(torch.rand(1, 1, 1, 1)), ValueError, ["2 pixels", "1"]),
    "image where a signal is expected": (
        lambda _: net()(torch.rand(1, 1, 4, 4), GridLaplacian(4, 4)),
        ValueError,
        ["(batch, 1, nodes)", "(1, 1, 4, 4)"],
    ),
    "signal on another graph": (
        lambda _: net()(torch.rand(1, 1, 15), GridLaplacian(4, 4)),
        ValueError,
        ["16", "15"],
    ),
    # files
    "no such folder": (lambda tmp: TIGraNet.from_pretrained(tmp / "none"), FileNotFoundError, ["none'", "config.json"]),
    "a file in place of a folder": (
        lambda tmp: TIGraNet.from_pretrained(__file__),
        FileNotFoundError,
        ["folder", "config.json", __file__],
    ),
    "a name without an owner": (lambda tmp: TIGraNet.from_pretrained("oriented"), FileNotFoundError, ["'oriented'"]),
    "no such folder, with a slash": (
        lambda tmp: TIGraNet.from_pretrained("model-that-is-not/"),
        FileNotFoundError,
        ["'model-that-is-not'"],
    ),
    "configuration that is a list": (lambda tmp: saved(tmp, config=[1]), ValueError, ["config.json'", "TIGraNet"]),
    "configuration of wrong types": (
        lambda tmp: saved(tmp, config={"architecture": 5, "num_classes": "2"}),
        ValueError,
        ["config.json'", "TIGraNet"],
    ),
    "no configuration": (lambda tmp: saved(tmp, config=None), FileNotFoundError, ["no config.json"]),
    "no weights": (lambda tmp: saved(tmp, weights=None), FileNotFoundError, ["no model.safetensors"]),
    "configuration cut short": (
        lambda tmp: saved(tmp, config=b'{"architecture": "SC['),
        ValueError,
        ["config.json'", "JSON"],
    ),
    "configuration of another library": (
        lambda tmp: saved(tmp, config={"hidden_size": 768, "num_classes": 2, "architecture": NET}),
        ValueError,
        ["config.json'", "TIGraNet", "['hidden_size']"],
    ),
    "configuration without classes": (
        lambda tmp: saved(tmp, config={"architecture": NET}),
        ValueError,
        ["config.json'", "['num_classes']"],
    ),
    "weights cut short": (
        lambda tmp: saved(tmp, weights=weights(tmp)[:-100]),
        ValueError,
        ["model.safetensors'", "safetensors file"],
    ),
    "empty weights": (lambda tmp: saved(tmp, weights=b""), ValueError, ["model.safetensors'", "safetensors file"]),
    "weights of another network": (
        lambda tmp: saved(tmp, weights=weights(tmp, num_classes=5)),
        ValueError,
        ["config.json'", "model.safetensors"],
    ),
    # training
    "NaN in the images": (
        lambda _: fit(
            net(), *[LabelledImages(torch.full((4, 1, 8, 8), torch.nan), torch.zeros(4).long())] * 2, Recipe(epochs=1)
        ),
        ValueError,
        ["training images", "NaN"],
    ),
    "no parts of a batch": (lambda _: Recipe(epochs=1, accumulate=0), ValueError, ["accumulate", "1", "0"]),
    "more parts than images": (
        lambda _: Recipe(epochs=1, batch_size=4, accumulate=5),
        ValueError,
        ["accumulate", "4", "5"],
    ),
    "no steps between checkpoints": (
        lambda _: fit(net(), DATA, None, Recipe(epochs=1), checkpoint_steps=0),
        ValueError,
        ["checkpoint_steps", "1", "0"],
    ),
    "no epochs": (lambda _: Recipe(epochs=0), ValueError, ["epochs", "1", "0"]),
}


@pytest.mark.parametrize("case", WRONG_INPUTS)
def test_a_wrong_input_raises_an_error_that_names_its_values(case, tmp_path, without_shape_checks):
    call, kind, words = WRONG_INPUTS[case]
    with pytest.raises(kind) as error:
        call(tmp_path)
    assert error.type is kind
    for word in words:
        assert word in str(error.value), (word, str(error.value))
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".") or path.suffix == ".tmp"]
