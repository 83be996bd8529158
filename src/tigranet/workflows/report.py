"""Write a report on a saved network: accuracy and confidence at every angle and shift, beside two CNNs."""

from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from torch import Tensor

from tigranet.baselines.convnet import ConvNet
from tigranet.choices import InferencePrecision
from tigranet.data import DataSet, LabelledImages, UnreadableFile
from tigranet.devices import select_accelerator, select_device
from tigranet.evaluation.batched_inference import module_device
from tigranet.evaluation.evidence import evidence_maps
from tigranet.evaluation.report import CURVE_IMAGES, PLAIN_CNN, ROTATED_CNN, Report, measured_part, report_on
from tigranet.evaluation.robustness import check_compatible
from tigranet.evaluation.training_history import TrainingHistory, read_training_history
from tigranet.model import TIGraNet
from tigranet.model_folder import CHECKPOINTS, HISTORY, LARGER
from tigranet.training import Recipe
from tigranet.workflows.baselines import recipe_with_rotations, train_plain_cnn
from tigranet.workflows.choose_recipe import choose_recipe
from tigranet.workflows.model_and_data import ModelAndData, load_model_and_data
from tigranet.workflows.model_calibration import model_folder, read_calibration
from tigranet.workflows.output_folder import check_apart_from_data, check_output_folder, require_matplotlib
from tigranet.workflows.training_images import MeasuredModel, exclude_training_images


@dataclass(frozen=True)
class ReportResult:
    """A report on a saved network."""

    report: Report
    """All numbers."""
    page: Path | None = None
    """The HTML page, if it was written; the numbers are in a JSON file beside it."""
    excluded_images: int = 0
    """Test images, or validation images in their place, that were left out because the network was trained on them."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""


def report(
    model: str | Path,
    data: str | Path | DataSet,
    output: str | Path | None = None,
    *,
    cnn: bool = True,
    epochs: int | None = None,
    curve_images: int = CURVE_IMAGES,
    seed: int | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    precision: InferencePrecision = "32",
    command: str = "",
    console: Console | None = None,
) -> ReportResult:
    """Measure a saved network in detail, and write the results as an HTML page.

    If the data have no test images, the validation images are measured. The page and the numbers say so.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        data: The name of a data set, the path of the user's images, or a data set.
        output: The folder to write the page to; without one nothing is written, and matplotlib is not needed.
        cnn: Whether to train two CNNs of the same size to compare with: a plain one, on the same images with the same
            recipe, and one on rotated images, see :func:`~tigranet.workflows.baselines.recipe_with_rotations`.
        epochs: Number of epochs of the CNNs; by default that of the network, or for the second one in proportion.
        curve_images: Number of test images that the curves are measured on, at most.
        seed: Seed of the random movements; by default that of the training.
        data_dir: Folder of the named data sets.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.
        command: The command that the user typed, for the page.
        console: Where to show progress and notices.

    Returns:
        The numbers, and the page.

    Raises:
        ImportError: If the page is to be written and matplotlib is missing.
        OSError: If ``output`` cannot be written.
        ValueError: If the network was trained on other data, or if there are no images to measure.
    """
    if output is not None:
        require_matplotlib()
        check_output_folder(Path(output), "report")
        check_apart_from_data(Path(output), data, "report")
    selected = select_device(device)
    if cnn:
        select_accelerator(device)  # refuses, before any work, a device that cannot train
    loaded = load_model_and_data(model, data, seed=seed, data_dir=data_dir, console=console)
    network, data_set = loaded.network, loaded.data
    check_compatible(network, data_set)
    part, measured_data = measured_part(data_set)
    excluded = loaded.excluded_images
    if part != "test":  # a validation image may have been a training image when the model was trained
        models = [MeasuredModel(str(model), network, loaded.run)]
        measured_data = exclude_training_images(
            measured_data, data, models, loaded.run, data_dir=data_dir, console=console
        )
        excluded += len(data_set.validation.labels) - len(measured_data.test.labels)
        data_set = replace(data_set, validation=measured_data.test)
        if console:
            console.print(f"no test images: measuring the {len(measured_data.test.labels)} {part} images instead")
    origin: dict[str, Any] = {
        "model": str(model),
        "boundary": network.boundary,
        "data": None if isinstance(data, DataSet) else str(data),
        "quick": loaded.run.quick,
    } | ({"command": command} if command else {})
    calibration = read_calibration(model, network)
    rivals: dict[str, ConvNet] = {}
    if cnn:
        recipe = choose_recipe(data_set, network.architecture, **({"seed": loaded.seed} | dict(loaded.run.recipe)))
        recipes = {PLAIN_CNN: recipe, ROTATED_CNN: recipe_with_rotations(recipe, network, data_set)}
        if epochs is not None:
            recipes = {name: replace(each, epochs=epochs) for name, each in recipes.items()}
        rivals, seconds = _train_rivals(network, data_set, recipes, console, device)
        origin |= {
            "recipe": str(recipes[PLAIN_CNN]),
            "rotated_recipe": str(recipes[ROTATED_CNN]),
            "training_seconds": seconds,
        }
    measured = report_on(
        network.to(selected).compute_in(precision),
        data_set,
        rivals,
        seed=loaded.seed,
        curve_images=curve_images,
        how_split=loaded.run.describe_split(data),
        provenance=origin,
        # validation images that the temperature was fitted on would make the error look too small
        temperature=None if calibration is None or part != "test" else calibration.temperature,
        history=_training_history(model, loaded, console),
        console=console,
    )
    page = None
    if output is not None:
        from tigranet.figures.report import save_report

        page = save_report(Path(output), measured, measured_data.test, _evidence(network, measured, measured_data.test))
    return ReportResult(measured, page, excluded, loaded.unreadable_files)


def _train_rivals(
    network: TIGraNet, data: DataSet, recipes: dict[str, Recipe], console: Console | None, device: str
) -> tuple[dict[str, ConvNet], dict[str, float]]:
    """Train the CNNs to compare with, and return them with the seconds that each took."""
    rivals, seconds = {}, {}
    for number, (name, recipe) in enumerate(recipes.items(), start=1):
        if console:
            leave_out = "; --no-cnn leaves out both" if number == 1 else ""
            console.print(f"training a {name} to compare with ({number} of {len(recipes)}{leave_out}): {recipe}")
        start = perf_counter()
        rivals[name] = train_plain_cnn(network, data, recipe, console, device=device)
        seconds[name] = round(perf_counter() - start, 1)
        if console:
            console.print(f"trained in {seconds[name]:.0f} s")
    return rivals, seconds


def _training_history(model: str | Path, loaded: ModelAndData, console: Console | None) -> TrainingHistory | None:
    """Return the curve of the training if its table is beside the model. A damaged table is a notice, not an error."""
    checkpoints = model_folder(model) / CHECKPOINTS
    path = (checkpoints / LARGER if loaded.run.is_larger else checkpoints) / HISTORY
    if loaded.run.quick or not path.is_file():  # a table beside a quick model belongs to an earlier model
        return None
    try:
        return read_training_history(path)
    except (OSError, ValueError) as error:
        if console:
            console.print(f"no training curve: {error}", markup=False, soft_wrap=True)
        return None


def _evidence(network: TIGraNet, measured: Report, test: LabelledImages) -> dict[int, Tensor]:
    """Return the evidence for the most confident errors, one image at a time, where it is finite."""
    device = module_device(network)
    maps = {
        mistake.image: evidence_maps(network, test.images[mistake.image][None].to(device)).maps[0].cpu()
        for mistake in measured.confident_mistakes
    }
    return {image: evidence for image, evidence in maps.items() if evidence.isfinite().all()}
