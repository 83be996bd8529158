"""
Filters over the spectrum
=========================

Draw the filters of a network over the spectrum of the grid, before and after a short training.

Usage::

    python examples/filters_over_the_spectrum.py filters.png
"""

import sys

import torch
from matplotlib.figure import Figure

from tigranet import TIGraNet
from tigranet.data import load
from tigranet.training import Recipe, fit


def main(path: str) -> None:
    """Train a small network on three digits and save the figure to ``path``."""
    data = load("mnist-012")
    torch.manual_seed(0)
    net = TIGraNet("paper-small", num_classes=3)
    lam = torch.linspace(0, 1.52, 200)  # 1.52 is the largest eigenvalue of the 8-neighbour grid
    powers = torch.stack([lam**m for m in range(4)])
    figure = Figure(figsize=(8, 3), layout="constrained")
    for axes, title in zip(figure.subplots(1, 2, sharey=True), ("before training", "after five epochs"), strict=True):
        axes.plot(lam, (net.graph_layers[0].alpha.detach() @ powers).T)
        axes.set(title=title, xlabel="eigenvalue of the Laplacian", ylabel="filter response, first layer")
        axes.label_outer()
        if title == "before training":
            fit(net, data.train, data.validation, Recipe(epochs=5)).cpu()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1])
