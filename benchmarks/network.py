"""The whole ``paper`` network at 26 x 26: one image, a training step, and on a GPU an epoch of 50,000 images."""

import csv
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
import torch.nn.functional as F

from benchmarks.timing import DEVICE, Row, compare
from tigranet import TIGraNet
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
    rows = compare("network, one image", 26, {mode: partial(answer, mode, images[:1]) for mode in modes}, rounds=51)
    rows += compare("network, 100 images", 26, {mode: partial(answer, mode, images) for mode in modes})
    net.train()
    rows += compare("network, training step of 100", 26, {mode: partial(step, mode) for mode in modes})
    if DEVICE.type == "cuda":
        rows += [epoch()]
    return rows


def epoch(images: int = 50_000, batch: int = 250, epochs: int = 8) -> Row:
    """An epoch of MNIST-rot's size by ``fit``, as ``tigranet train`` runs it: shuffling, jitter, steps, validation
    and checkpoints; the images lie on the GPU."""
    train, validation = (Labelled(torch.rand(count, 1, 26, 26), torch.arange(count) % 9) for count in (images, 3_000))
    recipe = Recipe(epochs=epochs, batch_size=batch, learning_rate=3e-3)
    with TemporaryDirectory() as folder:
        fit(TIGraNet("paper", num_classes=9), train, validation, recipe, folder=Path(folder))
        history = list(csv.DictReader((Path(folder) / "history.csv").read_text().splitlines()))
    seconds = [float(row["seconds"]) for row in history[1:]]  # the first compiles
    print(f"an epoch of {images} images, batch {batch}: {median(seconds):.3f} s", flush=True)
    return Row("network, epoch of 50,000", 26, "fused", 1e3 * median(seconds), 1e3 * min(seconds), 1.0)
