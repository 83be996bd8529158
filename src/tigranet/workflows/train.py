"""Train a TIGraNet on a data set, save it, and measure it on images as they are and moved."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from tigranet.architecture import PRESETS, Architecture
from tigranet.choices import Boundary, Log, Window, WindowOption
from tigranet.choose_architecture import alternatives_on_cpu, choose_preset, default_size_limit
from tigranet.choose_window import choose_window
from tigranet.data import DataSet, UnreadableFile
from tigranet.data.letterbox import MAX_DEFAULT_SIZE
from tigranet.devices import trains_on_cuda
from tigranet.evaluation.unknown.novelty import NoveltyDetector
from tigranet.feature_network import check_channels, fast_feature_architecture, feature_architecture
from tigranet.fine_tuning import AUTO, default_start, load_start
from tigranet.model import TIGraNet
from tigranet.model_folder import CHECKPOINTS, is_interrupted_training
from tigranet.training import Hardware, is_first_process
from tigranet.training.process_state import seeded
from tigranet.workflows.choose_recipe import choose_recipe
from tigranet.workflows.cross_validation import (
    CrossValidation,
    check_folds,
    check_in_memory,
    cross_validate,
    known_image_notices,
)
from tigranet.workflows.data_notices import data_notices
from tigranet.workflows.describe_training import describe_choice, describe_data, describe_network
from tigranet.workflows.draw_examples import draw_rotated_examples
from tigranet.workflows.exclusive_output import hold_output
from tigranet.workflows.first_answer import MAX_IMAGES, Comparison, FirstAnswer, compare_with, first_answer
from tigranet.workflows.load_data import load_data
from tigranet.workflows.measured_training import TrainingResult, count_parameters, measure, train_module
from tigranet.workflows.model_calibration import ModelCalibration, calibrate_network, write_calibration
from tigranet.workflows.model_card import model_card
from tigranet.workflows.output_folder import check_apart_from_data, check_no_saved_model, check_output_folder
from tigranet.workflows.paper_results import PAPER_RESULTS, PaperResult
from tigranet.workflows.saved_run import content_hashes, write_training_file
from tigranet.workflows.unknown_detection import fit_unknown_detector, write_unknown_detector

SHORT_TRAINING = 100
"""Number of steps below which a training needs no first answer, because it takes seconds itself."""
QUICK_METHOD = "Only the last layer is fitted: logistic regression on the invariant features of the other layers."
"""Sentence of the model card."""
PICTURE_FILE = "rotated.png"
"""Name of the picture in the output folder: rotated test images with the answers of the network. Without test images it
shows validation images."""


@dataclass(frozen=True)
class TrainedModel:
    """A trained network, and everything that was measured of it."""

    network: TIGraNet
    """On the CPU, in evaluation mode."""
    data: DataSet
    """The data set that it was trained and measured on."""
    result: TrainingResult
    """Accuracies, recipe and duration."""
    record: Mapping[str, Any]
    """The result and the origin of the data as plain values, as in ``training.json``, without the content hashes."""
    folder: Path | None = None
    """The output folder, if the model was saved."""
    picture: Path | None = None
    """The picture in the output folder, if it was drawn: of test images, or of validation images if there are none."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""
    calibration: ModelCalibration | None = None
    """The calibration on validation images, which label sets need; None if there are no validation images."""
    unknown_detector: NoveltyDetector | None = None
    """The detector of unknown images, fitted to training images and calibrated on validation images."""
    first: FirstAnswer | None = None
    """The linear classifier on invariant features, if one was fitted. With ``quick`` it is the model."""
    comparison: Comparison | None = None
    """The accuracies of the trained network and of that classifier on the same images."""
    cross_validation: CrossValidation | None = None
    """The accuracies of a cross-validation, if one was asked for."""
    paper: PaperResult | None = None
    """The paper's accuracies on this data set, if the network is one of the presets."""


def train(
    data: str | Path | DataSet,
    output: str | Path | None = None,
    *,
    architecture: str | Architecture | None = None,
    boundary: Boundary = "free",
    window: WindowOption = "auto",
    margin: int = 0,
    seed: int = 0,
    size: int | None = None,
    color: bool = False,
    group: str | None = None,
    train_images: int | None = None,
    data_dir: Path | None = None,
    recipe: Mapping[str, Any] | None = None,
    hardware: Hardware | None = None,
    init: str | Path | None = AUTO,
    quick: bool = False,
    first: bool = False,
    folds: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    log: Log = "csv",
    checkpoint_steps: int | None = None,
    command: str = "",
    console: Console | None = None,
) -> TrainedModel:
    """Train a network on images, save it, and measure it on moved images.

    The model is saved as soon as it is trained, so that it is not lost if measuring or drawing fails.

    Args:
        data: The name of a data set, the path of a folder, CSV file or .npz file of images, or of a folder of shards,
            or a data set.
        output: The folder to save the model to; without one nothing is saved.
        architecture: A preset, or layers such as ``SC[3,3]-S[10]-FC[50]``. By default it is chosen by the number and
            the size of the images and by the device, see :func:`tigranet.choose_architecture.choose_preset`.
        boundary: ``free``, or ``torus`` for exact invariance to shifts.
        window: ``disc`` fades out the corners of the images, ``none`` keeps them, and ``auto`` chooses from the
            training images and the network, see :func:`tigranet.choose_window.choose_window`.
        margin: Width in pixels of a margin of background around the images: the median of their border pixels.
        seed: Seed of the split, of the initial weights, of the batches and of the movements of the test images.
        size: Side length of the user's images in pixels; by default their own, at most what suits the network, see
            :func:`tigranet.choose_architecture.default_size_limit`.
        color: Whether the user's images keep all channels.
        group: Which of the user's images stay together in one part, see :func:`tigranet.data.load_user_data`.
        train_images: Number of the user's images to train on; all others are test images.
        data_dir: Folder of the named data sets.
        recipe: Fields of :class:`~tigranet.training.Recipe` to use instead of the defaults.
        hardware: What to train on; by default the best device that there is.
        init: The folder or the name of a saved network to start from. Its architecture, boundary, window and margin are
            kept. Classes that both have keep their weights of the last layer. None starts from random weights, and
            ``auto`` from a network of the package if the default architecture has one, see
            :func:`tigranet.fine_tuning.default_start`.
        quick: Whether to fit a linear classifier to invariant features in seconds, instead of training, see
            :func:`tigranet.workflows.first_answer.first_answer`. With ``init``, the features are those of that network.
        first: Whether to start with such a classifier, on at most
            :data:`~tigranet.workflows.first_answer.MAX_IMAGES` images, and to compare the trained network with it. A
            training of fewer than :data:`SHORT_TRAINING` steps needs none.
        folds: Also measure the accuracy by cross-validation with this number of folds, before the network is trained as
            without it, see :func:`tigranet.workflows.cross_validation.cross_validate`.
        overwrite: Whether to replace a model, or the checkpoints of an interrupted training, in ``output``.
        resume: Whether to continue an interrupted training from the checkpoint in ``output``.
        log: Where to write losses, beside the checkpoints.
        checkpoint_steps: Number of steps between checkpoints within an epoch, see :func:`tigranet.training.fit`.
        command: The command that the user typed, for the model card.
        console: Where to show progress and notices.

    Returns:
        The network, the accuracies, and the files that were written.

    Raises:
        FileExistsError: If ``output`` holds a model, and neither ``overwrite`` nor ``resume`` is set.
        OSError: If ``output`` cannot be written, or if another process is training a model there.
        ValueError: If arguments contradict each other, or if the network of ``init`` does not fit the images.
    """
    folder = None if output is None else Path(output)
    if folder is not None:
        check_output_folder(folder, "model")
        check_apart_from_data(folder, data, "model")
        if not overwrite and not resume and is_first_process():
            check_no_saved_model(folder)
    if quick and resume:
        raise ValueError("quick takes seconds and writes no checkpoints, so there is nothing to resume: leave out one")
    if folds is not None:
        check_folds(folds, quick, train_images, hardware)
    if isinstance(architecture, str):
        architecture = Architecture.parse(architecture)
    automatic, init = init == AUTO, None if init == AUTO else init
    start = None if init is None else load_start(init, architecture, boundary, window, margin)
    if start is not None:
        architecture, boundary, window, margin = start.architecture, start.boundary, start.window, start.margin
        color = color or start.in_maps > 1
        size = size or start.image_size
    gpu = trains_on_cuda("auto" if hardware is None else hardware.accelerator)
    loaded = load_data(
        data,
        seed=seed,
        size=size,
        max_size=MAX_DEFAULT_SIZE if quick and start is None else default_size_limit(architecture, gpu),
        color=color,
        channels=None if start is None else start.in_maps,
        group=group,
        train_images=train_images,
        data_dir=data_dir,
        console=console,
    )
    data_set = loaded.data
    images = len(data_set.train.labels)
    if folds is not None:
        check_in_memory(data_set)
    if start is not None:
        check_channels(start, str(init), data_set.train.images)
    height, width = data_set.train.images.shape[2:]
    side = max(height, width)
    preset = choose_preset(images, side, gpu)
    layers = architecture or (feature_architecture(data_set.train.images) if quick else Architecture.parse(preset))
    chosen_window = choose_window(window, layers, data_set.train.images)
    if automatic and architecture is None and not quick:
        shipped_start = default_start(
            preset, images, data_set.train.images.shape[1], boundary, chosen_window.window, margin, data_set.name
        )
        init, start = shipped_start or (None, None)
    training_recipe = choose_recipe(data_set, layers, **{**(recipe or {}), "seed": seed})

    answer_options: dict[str, Any] = {
        "boundary": boundary,
        "window": window,
        "margin": margin,
        "seed": seed,
        "grouped": group is not None,
        "device": "cpu" if hardware is not None and hardware.accelerator == "cpu" else "auto",
    }
    _print(console, *describe_data(data, data_set))
    new_network = partial(_new_network, layers, boundary, chosen_window.window, margin, seed, start)
    baseline: FirstAnswer | None = None
    if quick:
        with console.status("computing features") if console else nullcontext():
            baseline = first_answer(data_set, network=init or layers, **answer_options)
        network = baseline.network
        layers = network.architecture
    else:
        network = new_network(data_set)
    reason = describe_choice(images, not architecture, gpu, init, quick, alternatives_on_cpu(images, side))
    name = str(layers) if architecture or quick else preset
    _print(console, describe_network(name, count_parameters(network), reason), chosen_window.reason)
    if not quick:
        _print(console, f"recipe: {training_recipe}")
    _print(console, *data_notices(data_set))
    steps = training_recipe.epochs * -(-images // training_recipe.batch_size)
    if first and not quick and is_first_process() and steps >= SHORT_TRAINING:
        baseline = _accuracy_to_beat(data_set, console, answer_options)
    if baseline is not None:
        goal = "" if quick or baseline.accuracy is None else ": the accuracy to beat"
        _print(console, f"linear classifier on invariant features: {baseline}{goal}")
    fit_options: dict[str, Any] = {"resume": resume, "log": log}
    checkpoints = None if folder is None else folder / CHECKPOINTS
    optional = {"folder": checkpoints, "hardware": hardware, "checkpoint_steps": checkpoint_steps}
    fit_options |= {name: value for name, value in optional.items() if value is not None}
    with hold_output(folder):
        validated: CrossValidation | None = None
        if folds is not None:
            _print(console, *([] if init is None or automatic else known_image_notices(init, data_set)))
            validated = cross_validate(
                data_set,
                folds,
                new_network,
                training_recipe,
                seed=seed,
                console=console,
                **(fit_options | {"folder": folder}),
            )
            _print(console, *validated.describe())
        if quick:
            assert baseline is not None
            seconds = baseline.seconds
        else:
            seconds = train_module(network, data_set, training_recipe, console, **fit_options)
        origin = {
            "data": data_set.name if isinstance(data, DataSet) else str(data),
            "seed": seed,
            "group": group,
            "train_images": train_images,
            "window": chosen_window.window,
            "margin": margin,
            "command": command,
            "duplicates": None if loaded.duplicates is None else asdict(loaded.duplicates),
            "untested_classes": list(data_set.untested_classes),
            "init": None if init is None else str(init),
            "quick": quick,
            "first_answer": None if baseline is None else baseline.to_json(),
            "cross_validation": None if validated is None else validated.to_json(),
        }
        saves = folder is not None and is_first_process()
        hashes = content_hashes(data, data_set) if saves else {}
        if folder is not None and saves:
            network.save_pretrained(folder)
            write_training_file(folder, {"recipe": asdict(training_recipe)} | origin | hashes)
        with _naming_the_saved_model(folder if saves else None):
            calibration = calibrate_network(
                network,
                data_set.validation,
                selected_weights=training_recipe.keep == "best" or training_recipe.patience is not None,
            )
            if folder is not None and saves:
                write_calibration(folder, network, calibration)
            unknown_detector = fit_unknown_detector(network, data_set.train, data_set.validation, console)
            if folder is not None and saves:
                write_unknown_detector(folder, network, unknown_detector)
            result = measure(network, str(layers), data_set, training_recipe, seconds, console, boundary=boundary)
            network.cpu()
            record = result.to_json() | origin
            comparison = None if baseline is None or quick else compare_with(baseline, network, data_set)
            picture = None
            if folder is not None and saves:
                about = model_card(
                    result,
                    images,
                    command,
                    data_set.untested_classes,
                    loaded.duplicates,
                    data_set.orientation,
                    QUICK_METHOD if quick else None,
                )
                network.save_pretrained(folder, model_card_kwargs={"about": about})
                write_training_file(folder, record | hashes)
                picture = draw_rotated_examples(folder / PICTURE_FILE, network, data_set, console)
    return TrainedModel(
        network=network,
        data=data_set,
        result=result,
        record=record,
        folder=folder,
        picture=picture,
        unreadable_files=loaded.unreadable_files,
        calibration=calibration,
        unknown_detector=unknown_detector,
        first=baseline,
        comparison=comparison,
        cross_validation=validated,
        paper=PAPER_RESULTS.get(data_set.name) if str(layers) in PRESETS.values() else None,
    )


def can_resume(output: str | Path) -> bool:
    """Return whether there is a checkpoint, or a finished fold, to continue an interrupted training from.

    Args:
        output: The output folder of the training.

    Returns:
        Whether :func:`train` with ``resume=True`` would continue.
    """
    return is_interrupted_training(Path(output))


def _new_network(
    architecture: Architecture,
    boundary: Boundary,
    window: Window,
    margin: int,
    seed: int,
    start: TIGraNet | None,
    data: DataSet,
) -> TIGraNet:
    """Create a network for the images and classes of ``data``; the caller's random numbers are left alone."""
    channels, height, width = data.train.images.shape[1:]
    with seeded(seed):
        if start is not None:
            return start.with_classes(len(data.class_names), data.class_names, height if height == width else None)
        return TIGraNet(
            architecture,
            len(data.class_names),
            channels,
            boundary=boundary,
            window=window,
            margin=margin,
            class_names=data.class_names,
            image_size=height if height == width else None,
        )


def _print(console: Console | None, *lines: str) -> None:
    if console:
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)


def _accuracy_to_beat(data: DataSet, console: Console | None, options: dict[str, Any]) -> FirstAnswer | None:
    """Return a first answer on some of the images; an error is a notice, because the training does not need it."""
    try:
        with console.status("computing a first answer") if console else nullcontext():
            layers = fast_feature_architecture(data.train.images)
            return first_answer(data, network=layers, max_images=MAX_IMAGES, **options)
    except ValueError as error:
        _print(console, f"no first answer: {error}")
        return None


@contextmanager
def _naming_the_saved_model(folder: Path | None) -> Iterator[None]:
    """Add to an error where the trained model is, so that nobody trains it again."""
    try:
        yield
    except BaseException as error:
        if folder is not None:
            error.add_note(f"the network is trained and saved in '{folder}'; only measuring it failed")
        raise
