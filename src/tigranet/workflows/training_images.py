"""Leave out of a test the images that the measured networks were trained on."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from tigranet.data import REGISTRY, DataSet, data_folder, load
from tigranet.data.image_hashes import content_hash
from tigranet.data.leakage import exclude_images, hash_images
from tigranet.data.sources.named_data_set import unchanged
from tigranet.model import TIGraNet
from tigranet.pretrained import shipped
from tigranet.workflows.load_data import is_named_data_set
from tigranet.workflows.saved_run import SavedRun, load_data_of_run


@dataclass(frozen=True)
class MeasuredModel:
    """A saved network that is measured."""

    name: str
    """Its folder, or its name."""
    network: TIGraNet
    """The network."""
    run: SavedRun
    """How it was trained."""

    @property
    def named_data_set(self) -> str | None:
        """The named data set that it was trained on, if its training images are known by the seed of their split."""
        if self.run.training_hashes:
            return None
        name = self.name.rstrip("/")
        if name in shipped() and not Path(name).is_dir():
            return name.split("-", 1)[1]  # the networks of the package are called by preset and data set
        return self.run.data if self.run.data in REGISTRY else None


def exclude_training_images(
    data_set: DataSet,
    data: str | Path | DataSet,
    models: Sequence[MeasuredModel],
    split: SavedRun,
    *,
    data_dir: Path | None = None,
    console: Console | None = None,
) -> DataSet:
    """Remove from the test images those that any of the networks was trained on, so that all have the same test.

    Training images are recognised by their pixels. For a network that reads another size, the user's images are
    compared at that size. A network that was trained on a named data set has no record of its training images; they are
    drawn again from the data set by its seed, if its files are there.

    Args:
        data_set: The data set that was loaded from ``data``.
        data: The data as a workflow received it. A data set in memory was split by the caller: for a network that was
            trained and tested on exactly this split, its images stay as they are.
        models: The networks that are measured.
        split: The run whose seed, groups and number of training images split the data.
        data_dir: Folder of the named data sets.
        console: Where to print how many images are left out, and for which networks this is not known.

    Returns:
        The data set without those test images, or ``data_set`` itself if there are none.

    Raises:
        ValueError: If no test image remains.
    """
    total = len(data_set.test.labels)
    is_excluded = [False] * total
    counts: dict[str, int] = {}
    for model in models:
        is_training_image = _training_images(model, data_set, data, split, data_dir)
        if is_training_image is None:
            if console:
                console.print(
                    f"it is not known which images '{model.name}' was trained on: test images may be among them",
                    markup=False,
                )
        elif any(is_training_image):
            counts[model.name] = sum(is_training_image)
            is_excluded = [any(pair) for pair in zip(is_excluded, is_training_image, strict=True)]
    excluded = sum(is_excluded)
    if excluded == total and excluded:
        names = " and ".join(f"'{name}'" for name in counts)
        raise ValueError(
            f"all {total} test images of {data_set.name} are training images of {names}: test on other images"
        )
    if console and excluded:
        details = ", ".join(f"{count} of '{name}'" for name, count in counts.items())
        console.print(
            f"{excluded} of {total} test images of {data_set.name} are training images and are left out: {details}",
            markup=False,
        )
    return exclude_images(data_set, is_excluded)


def _training_images(
    model: MeasuredModel, data_set: DataSet, data: str | Path | DataSet, split: SavedRun, data_dir: Path | None
) -> list[bool] | None:
    """Return for each test image whether the network was trained on it, or None if that cannot be told."""
    run, training_data = model.run, model.named_data_set
    if isinstance(data, DataSet) and len(data.test.labels) and run.test_hash == content_hash(data.test.images):
        return [False] * len(data_set.test.labels)
    if training_data is None and not run.training_hashes:
        return None
    if training_data is None:
        is_training_image = _match(run.training_hashes, model.network, data_set, data, split, data_dir)
        if not is_named_data_set(data):
            return is_training_image
        sources = _load_unframed(str(data), split.seed, data_dir).test.images
        return [
            known or content in run.training_hashes
            for known, content in zip(is_training_image, hash_images(sources), strict=True)
        ]
    if data == training_data and run.seed == split.seed:
        return [False] * len(data_set.test.labels)  # the seed repeats the split
    try:
        if is_named_data_set(data):  # several data sets frame images of one source differently
            training_hashes = set(hash_images(_load_unframed(training_data, run.seed, data_dir).train.images))
            sources = _load_unframed(str(data), split.seed, data_dir).test.images
            return [content in training_hashes for content in hash_images(sources)]
        training_hashes = set(hash_images(load(training_data, run.seed, data_dir).train.images))
    except (OSError, ImportError):  # the files of the named data set, or the package that holds it, are not there
        return None
    return _match(training_hashes, model.network, data_set, data, split, data_dir)


def _match(
    training_hashes: Collection[str],
    network: TIGraNet,
    data_set: DataSet,
    data: str | Path | DataSet,
    split: SavedRun,
    data_dir: Path | None,
) -> list[bool]:
    """Compare the test images, at the size that the network was trained on, with its training images."""
    same_size = network.image_size in (None, data_set.test.images.shape[-1])
    if same_size or data_set.test_positions is None or isinstance(data, DataSet) or is_named_data_set(data):
        return [content in training_hashes for content in hash_images(data_set.test.images)]
    resized = load_data_of_run(network, split, data, data_dir=data_dir).data
    assert resized.test_positions is not None
    contents = zip(resized.test_positions.tolist(), hash_images(resized.test.images), strict=True)
    others = {position for position, content in contents if content not in training_hashes}
    return [position not in others for position in data_set.test_positions.tolist()]


def _load_unframed(name: str, seed: int, data_dir: Path | None) -> DataSet:
    """Load a named data set with the images of its source, neither resized nor padded."""
    return replace(REGISTRY[name], frame=unchanged).load(name, seed, data_folder(data_dir))
