"""Which images a saved network was trained on, as content hashes."""

from pathlib import Path

from tigranet.data import load
from tigranet.data.leakage import hash_images
from tigranet.model import TIGraNet
from tigranet.workflows.saved_run import SavedRun
from tigranet.workflows.training_images import MeasuredModel


def training_hashes(
    model: str | Path, network: TIGraNet, run: SavedRun, data_dir: Path | None = None
) -> frozenset[str] | None:
    """Return the content hashes of the training images of a saved network.

    Args:
        model: The folder of the model, or the name of a model that comes with the package.
        network: The network that was loaded from it.
        run: How it was trained.
        data_dir: Folder of the named data sets. A network that was trained on a named data set has no record of its
            training images; they are drawn again by its seed.

    Returns:
        The hashes, at the size that the network reads; None if they are not known.
    """
    if run.training_hashes:
        return run.training_hashes
    name = MeasuredModel(str(model), network, run).named_data_set
    if name is None:
        return None
    try:
        return frozenset(hash_images(load(name, run.seed, data_dir).train.images))
    except (OSError, ImportError):  # the files of the named data set, or the package that holds it, are not there
        return None
