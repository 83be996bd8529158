"""Draw the filters of a network over the spectrum of the grid, before and after a short training.

python examples/filters_over_the_spectrum.py filters.png
"""

import sys

import torch
from matplotlib.figure import Figure

from tigranet import TIGraNet
from tigranet.data import load
from tigranet.training import Recipe, fit


def main(picture: str) -> None:
    data = load("mnist-012")
    torch.manual_seed(0)
    net = TIGraNet("paper-small", num_classes=3)
    lam = torch.linspace(0, 1.52, 200)  # the spectrum of the 8-neighbour grid ends at 1.52
    powers = torch.stack([lam**m for m in range(4)])
    figure = Figure(figsize=(8, 3), layout="constrained")
    for axes, title in zip(figure.subplots(1, 2, sharey=True), ("at the start", "after five epochs"), strict=True):
        axes.plot(lam, (net.graph_layers[0].alpha.detach() @ powers).T)
        axes.set(title=title, xlabel="eigenvalue of the Laplacian", ylabel="response of the first filters")
        axes.label_outer()
        if title == "at the start":
            fit(net, data.train, data.validation, Recipe(epochs=5)).cpu()
    figure.savefig(picture, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1])
