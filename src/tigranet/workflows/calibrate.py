"""Calibrate a saved network on validation images, and fit its detector of unknown images, for models without them."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from tigranet.atomic_files import check_writable
from tigranet.data import DataSet
from tigranet.devices import select_device
from tigranet.evaluation.robustness import check_compatible
from tigranet.model import TIGraNet
from tigranet.model_folder import CALIBRATION, UNKNOWN_DETECTOR
from tigranet.pretrained import SHIPPED_FOLDER
from tigranet.workflows.model_calibration import ModelCalibration, calibrate_network, model_folder, write_calibration
from tigranet.workflows.saved_run import SavedRun, load_data_of_run
from tigranet.workflows.training_images import MeasuredModel, exclude_training_images
from tigranet.workflows.unknown_detection import fit_unknown_detector, write_unknown_detector


def calibrate(
    model: str | Path,
    data: str | Path | DataSet,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    console: Console | None = None,
) -> ModelCalibration:
    """Measure the calibration of a saved network on validation images, and write it to the folder of the model.

    The detector of unknown images is fitted to the training part of the data and calibrated on the same validation
    images. It is written too, if there are at least two of them.

    ``train`` does this at its end. This function is for models of earlier versions, and for models that are used on
    other images than they were trained on. The data are split as for the training, and images that the network was
    trained on are left out.

    Args:
        model: The folder of a saved model.
        data: The name of a data set, the path of the user's images, or a data set.
        data_dir: Folder of the named data sets.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        console: Where to show progress and notices.

    Returns:
        The calibration.

    Raises:
        ValueError: If the network was trained on other classes, if there are no validation images, or if ``model`` is
            the name of a model that comes with the package, whose folder is not written to.
        OSError: If a file cannot be written.
    """
    selected = select_device(device)
    network, run, folder = TIGraNet.from_pretrained(model), SavedRun.read(model), model_folder(model)
    if folder.parent == SHIPPED_FOLDER:
        raise ValueError(
            f"'{model}' is part of the package: save a copy to a folder with "
            f"TIGraNet.from_pretrained('{model}').save_pretrained(folder), and calibrate that"
        )
    for name in (CALIBRATION, UNKNOWN_DETECTOR):
        check_writable(folder / name)
    loaded = load_data_of_run(network, run, data, data_dir=data_dir, console=console).data
    if not len(loaded.validation.labels):
        raise ValueError(f"{loaded.name} has no validation images to calibrate on: put some into the part val")
    validation = replace(loaded, test=loaded.validation, test_files=None, test_positions=None)
    check_compatible(network, validation)
    models = [MeasuredModel(str(model), network, run)]
    images = exclude_training_images(validation, data, models, run, data_dir=data_dir, console=console).test
    selected_weights = run.recipe.get("keep") == "best" or run.recipe.get("patience") is not None
    with console.status("calibrating") if console else nullcontext():
        calibration = calibrate_network(network.to(selected), images, selected_weights=selected_weights)
    assert calibration is not None  # there is at least one image
    detector = fit_unknown_detector(network, loaded.train, images, console)
    write_calibration(folder, network, calibration)
    write_unknown_detector(folder, network, detector)
    if console:
        missing = "no detector of unknown images: it needs at least 2 validation images"
        console.print(missing if detector is None else detector.describe(), markup=False, soft_wrap=True)
    return calibration
