"""Train on a folder of images, and measure the accuracy on rotated and shifted images.

Usage:
    python examples/train_on_a_folder.py my_images/ model/
"""

import sys
from pathlib import Path

from rich.console import Console

from tigranet import Architecture
from tigranet.data import load_user_data
from tigranet.evaluation import measure_robustness
from tigranet.reproduction.runner import recipe_for, run


def main(folder: Path, model: Path, epochs: int | None = None) -> None:
    """Train a small network on ``folder``, print its accuracies and save it to ``model``."""
    data, unreadable_files = load_user_data(folder)
    for path, reason in unreadable_files:
        print(f"skipped {path}: {reason}")
    architecture = Architecture.parse("paper-small")
    recipe = recipe_for(data, architecture, **({} if epochs is None else {"epochs": epochs}))
    net, _ = run(data, architecture, recipe, console=Console(stderr=True))
    robustness = measure_robustness(net, data)
    print(f"upright: {robustness.upright:.1f} %")
    for transformation, accuracy in robustness.moved.items():
        print(f"{transformation}: {accuracy} %")
    net.save_pretrained(model)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
