"""A trained network in a folder with its recipe: a run that was interrupted while measuring need not train again."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tigranet.atomic_files import atomic_write
from tigranet.json_file import read_json_object
from tigranet.model import TIGraNet
from tigranet.training import Recipe

RECIPE_FILE = "recipe.json"
"""Name of the file beside the network that holds the recipe and the duration of the training."""
MAX_RECIPE_BYTES = 100_000
"""Largest size of this file."""


def train_once(folder: Path, network: TIGraNet, recipe: Recipe, train: Callable[[], float]) -> float:
    """Train a network and save it, unless the folder holds this network, trained with this recipe.

    The recipe is written last, so a folder that has one is complete.

    Args:
        folder: The folder; it need not exist. Another network in it is replaced.
        network: The network to train, or to load the weights into.
        recipe: How it is trained.
        train: Function that trains ``network`` in place and returns the duration in seconds.

    Returns:
        The duration of the training in seconds, now or earlier.

    Raises:
        ValueError: If a file in the folder is damaged.
    """
    file = folder / RECIPE_FILE
    if file.is_file():
        record = read_json_object(file, MAX_RECIPE_BYTES, "the recipe of a trained network")
        saved = TIGraNet.from_pretrained(folder)
        if record.get("recipe") == asdict(recipe) and saved.config == network.config:
            network.load_state_dict(saved.state_dict())
            return float(record["seconds"])
        file.unlink()
    seconds = train()
    network.save_pretrained(folder)
    with atomic_write(file) as text:
        text.write(json.dumps({"recipe": asdict(recipe), "seconds": seconds}, indent=2) + "\n")
    return seconds
