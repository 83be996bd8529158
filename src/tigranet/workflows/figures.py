"""Draw the paper's figures for a saved network."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tigranet.data import DataSet, UnreadableFile
from tigranet.devices import select_accelerator
from tigranet.evaluation.robustness import check_compatible
from tigranet.workflows.baselines import train_paper_baselines
from tigranet.workflows.model_and_data import load_model_and_data
from tigranet.workflows.output_folder import check_apart_from_data, check_output_folder, require_matplotlib


@dataclass(frozen=True)
class FigureFiles:
    """The pictures of a saved network."""

    files: tuple[Path, ...]
    """All pictures, each as PNG and as SVG."""
    excluded_images: int = 0
    """Test images that were left out because the network was trained on them."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""


def figures(
    model: str | Path,
    data: str | Path | DataSet,
    output: str | Path,
    *,
    baselines: bool = False,
    epochs: int | None = None,
    seed: int | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    console: Console | None = None,
) -> FigureFiles:
    """Draw the filters of a network, the nodes that pooling keeps, its maps of rotated images, and its answers.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        data: The name of a data set, the path of the user's images, or a data set.
        output: The folder to write the pictures to.
        baselines: Whether to train the paper's ConvNet and STN, and to draw their answers too.
        epochs: Number of epochs of the two baselines instead of the default.
        seed: Seed of the random movements; by default that of the training.
        data_dir: Folder of the named data sets.
        device: Where to train the baselines, see :func:`tigranet.devices.select_device`.
        console: Where to show progress and notices.

    Returns:
        The files that were written.

    Raises:
        ImportError: If matplotlib is missing.
        OSError: If ``output`` cannot be written.
        ValueError: If the network was trained on other data, or if there are no test images.
    """
    require_matplotlib()
    from tigranet.figures.gallery import save_gallery

    folder = Path(output)
    check_output_folder(folder, "gallery")
    check_apart_from_data(folder, data, "gallery")
    select_accelerator(device)  # refuses, before any work, a device that cannot train
    loaded = load_model_and_data(model, data, seed=seed, data_dir=data_dir, console=console)
    check_compatible(loaded.network, loaded.data)
    loaded.data.require_test_images()
    others = None
    if baselines:
        others = train_paper_baselines(loaded.network, loaded.data, loaded.seed, epochs, console, device=device)
    with console.status("drawing") if console else nullcontext():
        files = save_gallery(folder, loaded.network, loaded.data, loaded.seed, others)
    return FigureFiles(tuple(files), loaded.excluded_images, loaded.unreadable_files)
