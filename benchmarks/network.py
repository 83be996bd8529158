"""The whole ``paper`` network at 26 x 26 and its peers: one image, 100 images; a training step; an epoch on a GPU."""

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.peers import ChebConvLaplacian, scattering_network
from benchmarks.timing import DEVICE, Row, compare, without_gradients
from tigranet import TIGraNet
from tigranet.baselines import ConvNet
from tigranet.data.labelled import Labelled
from tigranet.kernels import using
from tigranet.training import Recipe, fit


def measure() -> list[Row]:
    torch.manual_seed(0)
    net = TIGraNet("paper", num_classes=9).to(DEVICE)
    images = torch.rand(100, 1, 26, 26, device=DEVICE)
    labels = torch.arange(100, device=DEVICE) % 9
    optimizer = torch.optim.Adam(net.parameters(), fused=True, capturable=DEVICE.type == "cuda")

    def answer(mode, images):
        with using(mode), torch.no_grad():
            return net(images)

    def step(mode):
        with using(mode):
            optimizer.zero_grad()
            F.cross_entropy(net(images), labels).backward()
            optimizer.step()

    modes = ("fused", "plain")
    net.eval()
    others = _peers(net)
    rows = []
    for work, some, rounds in (("network, one image", images[:1], 51), ("network, 100 images", images, 9)):
        candidates = {mode: partial(answer, mode, some) for mode in modes}
        candidates |= {name: without_gradients(partial(other, some)) for name, other in others.items()}
        rows += compare(work, 26, candidates, rounds=rounds)
    net.train()
    rows += compare("network, training step of 100", 26, {mode: partial(step, mode) for mode in modes})
    if DEVICE.type == "cuda":
        rows += [epoch(preset) for preset in ("paper", "oriented-small", "oriented")]
    return rows


def _peers(net: TIGraNet) -> dict[str, Callable[[Tensor], Tensor]]:
    """The same network on ChebConv's propagation, the paper's ConvNet, and kymatio's scattering below a classifier."""
    graph = ChebConvLaplacian(26, DEVICE)

    def by_cheb_conv(images: Tensor) -> Tensor:
        with using("plain"):
            return net(images.flatten(2), graph)

    torch.testing.assert_close(by_cheb_conv(image := torch.rand(1, 1, 26, 26, device=DEVICE)), net(image))
    peers = {"ChebConv": by_cheb_conv, "ConvNet": ConvNet("paper", num_classes=9, image_size=26).to(DEVICE).eval()}
    if (scattering := scattering_network(26, (500, 300, 100), 9, DEVICE)) is not None:
        peers["kymatio"] = scattering.eval()
    return peers


def epoch(preset: str, images: int = 50_000, batch: int = 250, epochs: int = 8) -> Row:
    """An epoch of MNIST-rot's size by ``fit``, as ``tigranet train`` runs it: shuffling, jitter, steps, validation
    and checkpoints; the images lie on the GPU."""
    train, validation = (Labelled(torch.rand(count, 1, 26, 26), torch.arange(count) % 9) for count in (images, 3_000))
    recipe = Recipe(epochs=epochs, batch_size=batch, learning_rate=3e-3, zoom=0.0 if preset == "paper" else 0.1)
    with TemporaryDirectory() as folder:
        fit(TIGraNet(preset, num_classes=9), train, validation, recipe, folder=Path(folder))
        history = list(csv.DictReader((Path(folder) / "history.csv").read_text().splitlines()))
    seconds = [float(row["seconds"]) for row in history[1:]]  # the first compiles
    print(f"{preset}, an epoch of {images} images, batch {batch}: {median(seconds):.3f} s", flush=True)
    return Row(f"{preset}, epoch of 50,000", 26, "fused", 1e3 * median(seconds), 1e3 * min(seconds), 1.0)
