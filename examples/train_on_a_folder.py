"""
Train on a folder
=================

Train a network on a folder of images, and print its accuracy on images as they are, rotated and shifted.

Usage::

    python examples/train_on_a_folder.py my_images/ model/
"""

import sys
from pathlib import Path

from rich.console import Console

from tigranet.workflows.train import train


def main(images: Path, model: Path, epochs: int | None = None) -> None:
    """Train, save and measure a network."""
    recipe = {} if epochs is None else {"epochs": epochs}
    trained = train(images, model, architecture="paper-small", recipe=recipe, console=Console(stderr=True))
    for file in trained.unreadable_files:
        print(f"skipped: {file.path}: {file.reason}")
    accuracy = trained.result.robustness
    if accuracy is None:
        print("no test images")
        return
    print(f"as they are: {accuracy.upright:.1f} %")
    for movement, value in accuracy.moved.items():
        print(f"{movement}: {value} %")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
