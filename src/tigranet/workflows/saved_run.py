"""How a saved model was trained: which split of the data, which recipe, and on which images.

The file ``training.json`` in a model's folder holds the recipe, the measured accuracies, and for the user's own images
the content hashes of the training images, so that a later test can leave those images out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from tigranet.atomic_files import atomic_write
from tigranet.data import REGISTRY, DataSet
from tigranet.data.image_hashes import content_hash
from tigranet.data.leakage import hash_images
from tigranet.data.splits import HELD_OUT
from tigranet.model import TIGraNet
from tigranet.workflows.load_data import LoadedData, is_named_data_set, load_data
from tigranet.workflows.training_record import read_training_record

TRAINING_FILE = "training.json"
"""Name of the file in a model's folder."""


@dataclass(frozen=True)
class SavedRun:
    """The training of a saved model, as far as its folder tells; the defaults stand for a folder that does not."""

    seed: int = 0
    """Seed of the split, of the initial weights and of the batches."""
    group: str | None = None
    """Which of the user's images stayed together in one part."""
    train_images: int | None = None
    """Number of the user's images that were drawn to train, if it was given."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the recipe."""
    training_hashes: frozenset[str] = frozenset()
    """Content hashes of the training images; empty for a named data set, whose split the seed repeats."""
    test_hash: str | None = None
    """Content hash of all test images together."""
    data: str = ""
    """The path or the name of the data."""
    quick: bool = False
    """Whether only the last layer was fitted, instead of a training."""
    is_larger: bool = False
    """Whether the model is a larger network, which was trained after a first one."""

    @classmethod
    def read(cls, model: str | Path) -> "SavedRun":
        """Read ``training.json`` from the folder of a model.

        Args:
            model: The folder of a saved model, or the name of a model, which has no such file.

        Returns:
            The run; one with default values if the file does not exist.

        Raises:
            ValueError: If the file is not a record of a training.
        """
        path = Path(model, TRAINING_FILE)
        if not path.is_file():
            return cls()
        record = read_training_record(path)
        return cls(
            seed=int(record.get("seed", 0)),
            group=record.get("group"),
            train_images=record.get("train_images"),
            recipe=record.get("recipe", {}),
            training_hashes=frozenset(record.get("seen", "").split()),
            test_hash=record.get("tested"),
            data=str(record.get("data", "")),
            quick=record.get("quick", False),
            is_larger=record.get("is_larger", False),
        )

    def describe_split(self, data: str | Path | DataSet) -> str:
        """Describe how the images were split, for the reader of a report.

        Args:
            data: The data as a workflow received it.

        Returns:
            A phrase.

        Example:
            >>> SavedRun(seed=3, train_images=30).describe_split("photos/")
            '30 images to train, all others to test, drawn by seed 3'
        """
        seed = f"drawn by seed {self.seed}"
        if isinstance(data, DataSet):
            return "split by the caller"
        if is_named_data_set(data):
            return f"{REGISTRY[str(data)].about}; {seed}"
        if self.train_images:
            return f"{self.train_images} images to train, all others to test, {seed}"
        grouped = f"; images of one group ({self.group}) stay together" if self.group else ""
        share = f"{HELD_OUT:.0%} of each class to validate and as many to test"
        return f"by the folder's own parts, or without parts {share}, {seed}{grouped}"


def content_hashes(data: str | Path | DataSet, data_set: DataSet) -> dict[str, str]:
    """Return the entries of ``training.json`` that identify the training and test images.

    Args:
        data: The data as a workflow received it.
        data_set: The data set that was loaded from it.

    Returns:
        The hashes of the training images (``seen``) and one hash of all test images (``tested``); nothing for a named
        data set, whose split the seed repeats.
    """
    if is_named_data_set(data):
        return {}
    return {"seen": " ".join(hash_images(data_set.train.images)), "tested": content_hash(data_set.test.images)}


def write_training_file(folder: Path, record: Mapping[str, Any]) -> None:
    """Write ``training.json`` to the folder of a model; a reader never finds half a file.

    Args:
        folder: The folder of the model.
        record: The values to write.
    """
    with atomic_write(folder / TRAINING_FILE) as file:
        json.dump(record, file, indent=2)


def load_data_of_run(
    network: TIGraNet,
    run: SavedRun,
    data: str | Path | DataSet,
    *,
    data_dir: Path | None = None,
    console: Console | None = None,
) -> LoadedData:
    """Load data in the format that a network reads, split as for its training.

    Args:
        network: The network.
        run: How it was trained.
        data: A data set, the name of one, or the path of the user's images.
        data_dir: Folder of the named data sets.
        console: Where to show progress and notices.

    Returns:
        The data. If they have changed since the training, training images of the network may be among the test images.
    """
    try:
        return load_data(
            data,
            seed=run.seed,
            size=network.image_size,
            color=network.in_maps > 1,
            channels=network.in_maps,
            group=run.group,
            train_images=run.train_images,
            data_dir=data_dir,
            console=console,
        )
    except ValueError as error:
        if run.group is None and run.train_images is None:
            raise
        # The user did not choose this split: it is that of the training.
        raise ValueError(f"{error} (group and train_images are those of the model's {TRAINING_FILE})") from None
