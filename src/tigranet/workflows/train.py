"""Train a TIGraNet on a data set, save it, and measure it on images as they are and moved."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from tigranet.architecture import PRESETS, Architecture
from tigranet.choices import Boundary, Log, WindowOption
from tigranet.choose_architecture import ACCURATE, choose_preset, default_size_limit, faster_preset, named_default
from tigranet.data import DataSet
from tigranet.data.letterbox import MAX_DEFAULT_SIZE
from tigranet.devices import trains_on_cuda
from tigranet.evaluation.unknown.novelty import NoveltyDetector
from tigranet.feature_network import check_channels, fast_feature_architecture, feature_architecture
from tigranet.fine_tuning import AUTO, Start, load_start
from tigranet.model_folder import CALIBRATION, CHECKPOINTS, LARGER, UNKNOWN_DETECTOR, is_interrupted_training
from tigranet.training import Hardware, is_first_process
from tigranet.workflows.choose_network import ChosenNetwork, NetworkOptions, default_network, requested_network
from tigranet.workflows.cross_validation import (
    CrossValidation,
    check_folds,
    check_in_memory,
    cross_validate,
    known_image_notices,
)
from tigranet.workflows.data_notices import data_notices
from tigranet.workflows.describe_training import describe_choice, describe_data, describe_network, print_lines
from tigranet.workflows.draw_examples import draw_rotated_examples
from tigranet.workflows.exclusive_output import hold_output
from tigranet.workflows.first_answer import MAX_IMAGES, FirstAnswer, compare_with, first_answer
from tigranet.workflows.larger_network import (
    EXTRA_MINUTES,
    LargerNetwork,
    check_extra_minutes,
    is_begun,
    larger_network_for,
    larger_network_record,
    train_larger_network,
)
from tigranet.workflows.load_data import load_data
from tigranet.workflows.measured_training import count_parameters, measure, train_module
from tigranet.workflows.model_calibration import ModelCalibration, calibrate_network, write_calibration
from tigranet.workflows.model_card import model_card
from tigranet.workflows.output_folder import check_apart_from_data, check_no_saved_model, check_output_folder
from tigranet.workflows.paper_results import PAPER_RESULTS
from tigranet.workflows.saved_run import content_hashes, write_training_file
from tigranet.workflows.trained_model import TrainedModel
from tigranet.workflows.unknown_detection import fit_unknown_detector, write_unknown_detector

SHORT_TRAINING = 100
"""Number of steps below which a training needs no first answer, because it takes seconds itself."""
QUICK_METHOD = "Only the last layer is fitted: logistic regression on the invariant features of the other layers."
"""Sentence of the model card."""
PICTURE_FILE = "rotated.png"
"""Name of the picture in the output folder: rotated test images with the answers of the network. Without test images it
shows validation images."""


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
    color: bool | None = None,
    group: str | None = None,
    train_images: int | None = None,
    data_dir: Path | None = None,
    recipe: Mapping[str, Any] | None = None,
    hardware: Hardware | None = None,
    init: str | Path | None = AUTO,
    quick: bool = False,
    first: bool = False,
    folds: int | None = None,
    extra_minutes: float = EXTRA_MINUTES,
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
        architecture: A preset, or layers such as ``SC[3,3]-S[10]-FC[50]``. ``fast`` and ``accurate`` are the presets
            for the number and the size of the images that are the default on a CPU and on a GPU, see
            :func:`tigranet.choose_architecture.choose_preset`. By default a GPU trains the accurate one, and a CPU the
            fast one and then perhaps the accurate one, see ``extra_minutes``.
        boundary: ``free``, or ``torus`` for exact invariance to shifts.
        window: ``disc`` fades out the corners of the images, ``none`` keeps them, and ``auto`` chooses from the
            training images and the network, see :func:`tigranet.choose_window.choose_window`.
        margin: Width in pixels of a margin of background around the images: the median of their border pixels.
        seed: Seed of the split, of the initial weights, of the batches and of the movements of the test images.
        size: Side length of the user's images in pixels; by default their own, at most what suits the network, see
            :func:`tigranet.choose_architecture.default_size_limit`.
        color: Whether the user's images keep all channels. None keeps them if the images have colours, see
            :mod:`tigranet.data.image_colors`.
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
        extra_minutes: On a CPU: the largest expected duration in minutes of the training of the accurate network after
            the fast one. It is not trained if the fast one is right on almost all validation images, nor if an
            architecture, a number of epochs, a patience or folds are given. 0 never trains it. See
            :func:`tigranet.workflows.larger_network.train_larger_network`.
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
    check_extra_minutes(extra_minutes)
    speed = named_default(architecture)
    if speed is not None and (quick or init not in (None, AUTO)):
        reason = "quick trains no network" if quick else f"a training that starts from '{init}' keeps its architecture"
        raise ValueError(f"{reason}: leave out architecture '{speed}'")
    layers = None if speed else Architecture.parse(architecture) if isinstance(architecture, str) else architecture
    start: Start | None = None
    if init is not None and init != AUTO:
        network = load_start(init, layers, boundary, window, margin)
        start = Start(str(init), network)
        layers, boundary, window, margin = network.architecture, network.boundary, network.window, network.margin
        color = bool(color) or network.in_maps > 1
        size = size or network.image_size
    hardware_used = hardware or Hardware()
    gpu = trains_on_cuda(hardware_used.accelerator)
    loaded = load_data(
        data,
        seed=seed,
        size=size,
        max_size=MAX_DEFAULT_SIZE if quick and start is None else default_size_limit(layers, gpu),
        color=color,
        channels=None if start is None else start.network.in_maps,
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
        check_channels(start.network, start.name, data_set.train.images)
    options = NetworkOptions(boundary, window, margin, seed, recipe or {}, shipped_starts=init == AUTO)
    is_default = layers is None and speed is None
    if layers is None and not quick:
        accurate = gpu if speed is None else speed == ACCURATE
        chosen = default_network(data_set, accurate, options, gpu)
    else:
        chosen = requested_network(data_set, layers or feature_architecture(data_set.train.images), options, start)
    larger_choice: ChosenNetwork | None = None
    if is_default and not quick and folds is None:
        larger_choice = larger_network_for(chosen, data_set, hardware_used, extra_minutes)
    answer_options: dict[str, Any] = {
        "boundary": boundary,
        "window": window,
        "margin": margin,
        "seed": seed,
        "grouped": group is not None,
        "device": "cpu" if hardware_used.accelerator == "cpu" else "auto",
    }
    print_lines(console, *describe_data(data, data_set))
    baseline: FirstAnswer | None = None
    if quick:
        with console.status("computing features") if console else nullcontext():
            features = chosen.architecture if start is None else start.name
            baseline = first_answer(data_set, network=features, **answer_options)
        network = baseline.network
        chosen = replace(chosen, name=str(network.architecture), architecture=network.architecture)
    else:
        network = chosen.new_network(data_set)
    side = max(data_set.train.images.shape[2:])
    faster = faster_preset(images, side)
    choice_name = "default" if is_default else speed
    start_used = None if chosen.start is None else chosen.start.name
    is_fast = not gpu and chosen.name != choose_preset(images, side, gpu=True)
    may_train_larger = larger_choice is not None
    reason = describe_choice(images, choice_name, gpu, start_used, quick, faster, is_fast, may_train_larger)
    print_lines(console, describe_network(chosen.name, count_parameters(network), reason), chosen.window.reason)
    if not quick:
        print_lines(console, f"recipe: {chosen.recipe}")
    print_lines(console, *data_notices(data_set))
    steps = chosen.recipe.epochs * -(-images // chosen.recipe.batch_size)
    if first and not quick and is_first_process() and steps >= SHORT_TRAINING:
        baseline = _accuracy_to_beat(data_set, console, answer_options)
    if baseline is not None:
        goal = "" if quick or baseline.accuracy is None else ": the accuracy to beat"
        print_lines(console, f"linear classifier on invariant features: {baseline}{goal}")
    fit_options: dict[str, Any] = {"resume": resume, "log": log}
    optional = {"hardware": hardware, "checkpoint_steps": checkpoint_steps}
    fit_options |= {name: value for name, value in optional.items() if value is not None}
    with hold_output(folder):
        validated: CrossValidation | None = None
        if folds is not None:
            print_lines(console, *([] if start is None else known_image_notices(start.name, data_set)))
            validated = cross_validate(
                data_set,
                folds,
                chosen.new_network,
                chosen.recipe,
                seed=seed,
                console=console,
                **(fit_options | {"folder": folder}),
            )
            print_lines(console, *validated.describe())
        if quick:
            assert baseline is not None
            seconds = baseline.seconds
        else:
            if folder is not None:
                fit_options["folder"] = folder / CHECKPOINTS
                if not resume and is_first_process():
                    shutil.rmtree(folder / CHECKPOINTS / LARGER, ignore_errors=True)
            seconds = train_module(network, data_set, chosen.recipe, console, **fit_options)
        origin = {
            "data": data_set.name if isinstance(data, DataSet) else str(data),
            "seed": seed,
            "group": group,
            "train_images": train_images,
            "margin": margin,
            "command": command,
            "duplicates": None if loaded.duplicates is None else asdict(loaded.duplicates),
            "untested_classes": list(data_set.untested_classes),
            "quick": quick,
            "first_answer": None if baseline is None else baseline.to_json(),
            "cross_validation": None if validated is None else validated.to_json(),
        }
        saves = folder is not None and is_first_process()
        hashes = content_hashes(data, data_set) if saves else {}
        larger: LargerNetwork | None = None

        def save() -> tuple[ModelCalibration | None, NoveltyDetector | None]:
            """Save the network and everything that depends on its weights, without files of an earlier model."""
            choice = {"recipe": asdict(chosen.recipe)} | chosen.origin() | larger_network_record(larger)
            if folder is not None and saves:
                for name in (CALIBRATION, UNKNOWN_DETECTOR, PICTURE_FILE):
                    (folder / name).unlink(missing_ok=True)
                network.save_pretrained(folder)
                write_training_file(folder, origin | choice | hashes)
            with _naming_the_saved_model(folder if saves else None):
                selected = chosen.recipe.keep == "best" or chosen.recipe.patience is not None
                calibration = calibrate_network(network, data_set.validation, selected_weights=selected)
                if folder is not None and saves:
                    write_calibration(folder, network, calibration)
                detector = fit_unknown_detector(network, data_set.train, data_set.validation, console)
                if folder is not None and saves:
                    write_unknown_detector(folder, network, detector)
            return calibration, detector

        saved: tuple[ModelCalibration | None, NoveltyDetector | None] | None = None
        if larger_choice is not None:
            if folder is None or not resume or not is_begun(folder / CHECKPOINTS):
                saved = save()  # a model to use, or to keep, while the larger network is trained
            with _naming_the_saved_model(folder if saves else None):
                larger = train_larger_network(
                    larger_choice, chosen, network, data_set, extra_minutes, console, **fit_options
                )
            if larger is not None and larger.network is not None and larger.is_kept:
                chosen, network, seconds, saved = larger.chosen, larger.network, seconds + larger.seconds, None
        calibration, unknown_detector = saved or save()
        with _naming_the_saved_model(folder if saves else None):
            layers_text = str(chosen.architecture)
            result = measure(network, layers_text, data_set, chosen.recipe, seconds, console, boundary=boundary)
            network.cpu()
            record = result.to_json() | origin | chosen.origin() | larger_network_record(larger)
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
        larger=larger,
        paper=PAPER_RESULTS.get(data_set.name) if layers_text in PRESETS.values() else None,
    )


def can_resume(output: str | Path) -> bool:
    """Return whether there is a checkpoint, or a finished fold, to continue an interrupted training from.

    Args:
        output: The output folder of the training.

    Returns:
        Whether :func:`train` with ``resume=True`` would continue.
    """
    return is_interrupted_training(Path(output))


def _accuracy_to_beat(data: DataSet, console: Console | None, options: dict[str, Any]) -> FirstAnswer | None:
    """Return a first answer on some of the images; an error is a notice, because the training does not need it."""
    try:
        with console.status("computing a first answer") if console else nullcontext():
            layers = fast_feature_architecture(data.train.images)
            return first_answer(data, network=layers, max_images=MAX_IMAGES, **options)
    except ValueError as error:
        print_lines(console, f"no first answer: {error}")
        return None


@contextmanager
def _naming_the_saved_model(folder: Path | None) -> Iterator[None]:
    """Add to an error where the trained model is, so that nobody trains it again."""
    try:
        yield
    except BaseException as error:
        if folder is not None and not getattr(error, "__notes__", None):
            error.add_note(f"the network is trained and saved in '{folder}'; only measuring it failed")
        raise
