"""Benchmark of whole networks and their peers: ``paper`` at 26 x 26 pixels, the oriented networks at 28 x 28.

One image, 100 images, a training step, and on a GPU an epoch.
"""

import csv
from collections.abc import Callable, Iterator
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
from tigranet.data.dataset import LabelledImages
from tigranet.ops import using
from tigranet.training import Recipe, fit

Peers = dict[str, Callable[[Tensor], Tensor]]


def measure() -> Iterator[Row]:
    """Time all networks."""
    torch.manual_seed(0)
    net = TIGraNet("paper", num_classes=9).to(DEVICE).eval()
    yield from time_network("network", net, 26, _peers(net))
    for preset in ("oriented-small", "oriented"):
        convnet = ConvNet("paper", num_classes=9, image_size=28).to(DEVICE).eval()
        yield from time_network(preset, TIGraNet(preset, num_classes=9).to(DEVICE), 28, {"ConvNet": convnet})
    if DEVICE.type == "cuda":
        yield from (epoch(preset) for preset in ("paper", "oriented-small", "oriented"))


def time_network(name: str, net: TIGraNet, size: int, peers: Peers, batch: int = 100) -> Iterator[Row]:
    """Time one image, a batch and a training step, fused and plain, and the first two also for the peers."""
    images = torch.rand(batch, 1, size, size, device=DEVICE)
    labels = torch.arange(batch, device=DEVICE) % 9
    optimizer = torch.optim.Adam(net.parameters(), fused=True, capturable=DEVICE.type == "cuda")

    def predict(mode, images):
        with using(mode), torch.no_grad():
            return net(images)

    def step(mode):
        with using(mode):
            optimizer.zero_grad()
            F.cross_entropy(net(images), labels).backward()
            optimizer.step()

    modes = ("fused", "plain")
    net.eval()
    for work, inputs, rounds in (("one image", images[:1], 51), (f"{batch} images", images, 9)):
        candidates = {mode: partial(predict, mode, inputs) for mode in modes}
        candidates |= {peer: without_gradients(partial(network, inputs)) for peer, network in peers.items()}
        yield from compare(f"{name}, {work}", size, candidates, rounds=rounds)
    net.train()
    yield from compare(f"{name}, training step of {batch}", size, {mode: partial(step, mode) for mode in modes})


def _peers(net: TIGraNet) -> Peers:
    """Return the same network with ChebConv's propagation, the paper's ConvNet, and kymatio's scattering network."""
    graph = ChebConvLaplacian(26, DEVICE)

    def with_cheb_conv(images: Tensor) -> Tensor:
        with using("plain"):
            return net(images.flatten(2), graph)

    torch.testing.assert_close(with_cheb_conv(image := torch.rand(1, 1, 26, 26, device=DEVICE)), net(image))
    peers = {"ChebConv": with_cheb_conv, "ConvNet": ConvNet("paper", num_classes=9, image_size=26).to(DEVICE).eval()}
    if (scattering := scattering_network(26, (500, 300, 100), 9, DEVICE)) is not None:
        peers["kymatio"] = scattering.eval()
    return peers


def epoch(preset: str, images: int = 50_000, batch: int = 250, epochs: int = 8) -> Row:
    """Time an epoch of ``fit`` on as many images as MNIST-rot has, with images on the GPU.

    As in ``tigranet train``, it includes shuffling, jitter, training steps, validation and checkpoints.
    """
    train, validation = (
        LabelledImages(torch.rand(count, 1, 26, 26), torch.arange(count) % 9) for count in (images, 3_000)
    )
    net = TIGraNet(preset, num_classes=9)
    recipe = Recipe.for_network(net, images, epochs=epochs, batch_size=batch)
    with TemporaryDirectory() as folder:
        fit(net, train, validation, recipe, folder=Path(folder))
        history = list(csv.DictReader((Path(folder) / "history.csv").read_text().splitlines()))
    seconds = [float(row["seconds"]) for row in history[1:]]  # the first epoch includes compilation
    print(f"{preset}, one epoch of {images} images, batch size {batch}: {median(seconds):.3f} s", flush=True)
    return Row(f"{preset}, epoch of 50,000", 26, "fused", 1e3 * median(seconds), 1e3 * min(seconds), 1.0)
