"""Suggest which labels are wrong, by cross-validation of a linear classifier on invariant features.

No network is trained. The features are those of a network with random weights, because the features of a network that
was trained on the labels would know the wrong ones too.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from rich.console import Console
from torch import Tensor

from tigranet.choose_window import choose_window
from tigranet.data import DataSet
from tigranet.data.batch_size import limit_batch_size
from tigranet.devices import select_device
from tigranet.evaluation.batched_inference import apply_in_batches
from tigranet.evaluation.canonical_pictures import canonical_pictures, picture_digests
from tigranet.evaluation.label_errors import LabelErrors, find_label_errors
from tigranet.evaluation.suggestions import LabelSuggestion, LabelSuggestions
from tigranet.feature_network import feature_architecture, untrained_network
from tigranet.model import TIGraNet
from tigranet.training.process_state import seeded
from tigranet.workflows.first_answer import BATCH_SIZE, FOLDS
from tigranet.workflows.label_folds import is_judgeable, label_folds
from tigranet.workflows.labelled_data import LabelledData, load_labelled_data
from tigranet.workflows.linear_head import out_of_sample_logits
from tigranet.workflows.saved_run import SavedRun

ROUNDS = 3
"""Number of cross-validations. From the second on, labels that were suspicious before are not used to fit."""
MAX_FITTED_IMAGES = 5_000
"""Largest number of images that a regression is fitted to, so that 100,000 images take minutes."""
MAX_SHARE = 0.2
"""Largest share of the labels that are listed. Where a classifier doubts more, it is the classifier that is wrong."""
EXAMINED_IMAGES = 256
"""Number of images that the features are adapted to."""


def suggest_labels(
    model: str | Path,
    data: str | Path | DataSet | LabelledData,
    *,
    seed: int | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    console: Console | None = None,
) -> LabelSuggestions:
    """Suggest which labels are wrong.

    The label of each image is compared with the probabilities of a classifier that was fitted to other images, see
    :mod:`tigranet.evaluation.label_errors`. Images of one group are never on both sides. Images with the same pixels,
    or with those of a quarter turn, are judged once; if they have different labels, all of them are suggested. The
    result depends neither on the order of the images nor on quarter turns of them; for images that are resized, up to
    rounding errors.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package: images are read as for
            this model, with the groups of its training.
        data: The name of a data set, the path of the user's images, a data set, or images. Of a data set the training
            images are judged, and of the user's images all.
        seed: Seed of the features and of the folds; by default that of the training.
        data_dir: Folder of the named data sets.
        device: Where to compute the features, see :func:`tigranet.devices.select_device`.
        console: Where to show progress.

    Returns:
        The images whose labels are suspicious, the most suspicious first.

    Raises:
        FileNotFoundError: If the model or the data do not exist.
        ValueError: If the images cannot be read, or if fewer than two classes have enough images.
    """
    selected = select_device(device)
    network, run = TIGraNet.from_pretrained(model), SavedRun.read(model)
    seed = run.seed if seed is None else seed
    labelled = data if isinstance(data, LabelledData) else load_labelled_data(network, run, data, data_dir, console)
    with console.status("comparing images") if console else nullcontext() as status:
        show: Callable[[str], None] = status.update if status else lambda text: None
        identities = _identify(labelled.images.images, show)
        order = _one_of_each(identities, labelled)
        conflicting = _conflicting(identities, labelled.images.labels.tolist())
        kept = torch.tensor([position for position in order if position not in conflicting], dtype=torch.int64)
        labels = labelled.images.labels[kept]
        groups = None if labelled.groups is None else [labelled.groups[position] for position in kept.tolist()]
        folds = label_folds(labels, groups, FOLDS, seed)
        is_judged = is_judgeable(labels, folds)
        unjudged = labels[~is_judged].unique().tolist()
        _check_classes(labels[is_judged], labelled.class_names)
        kept, labels, folds = kept[is_judged], labels[is_judged], folds[is_judged]
        features = _features(labelled.images.images, kept, seed, selected, show)
        errors, accuracy = _judge(features, labels, folds, seed, show)
    predicted, left_out = _predicted_labels(errors, kept, labelled)
    return LabelSuggestions(
        labels=(*_conflicting_labels(conflicting, identities, labelled), *predicted),
        examined=len(kept),
        accuracy=accuracy,
        duplicates=len(identities) - len(order),
        unjudged_classes=tuple(labelled.class_names[label] for label in unjudged),
        unjudged_images=int((~is_judged).sum()),
        left_out=left_out,
        unreadable_files=labelled.unreadable_files,
    )


class _Identity(NamedTuple):
    """What identifies a picture, whatever its rotation."""

    brightness: float
    """Mean square of the pixels, rounded, which changes little if the pixels do."""
    digest: int
    """A hash of the pixels."""


def _identify(images: Float[Tensor, "images maps height width"], show: Callable[[str], None]) -> list[_Identity]:
    """Return the identity of each image. It gives them an order that depends on the pictures alone."""
    identities: list[_Identity] = []
    for batch in images.split(limit_batch_size(BATCH_SIZE, *images.shape[2:])):
        pictures = canonical_pictures(batch)
        brightness = [round(value, 6) for value in pictures.double().square().flatten(1).mean(1).tolist()]
        identities += map(_Identity, brightness, picture_digests(pictures))
        show(f"comparing images: {len(identities)}")
    return identities


def _one_of_each(identities: Sequence[_Identity], labelled: LabelledData) -> list[int]:
    """Return the position of one image per picture, in the order of the pictures."""
    first: dict[_Identity, int] = {}
    for position, identity in enumerate(identities):
        if identity not in first or labelled.name(position) < labelled.name(first[identity]):
            first[identity] = position
    return [first[identity] for identity in sorted(first)]


def _conflicting(identities: Sequence[_Identity], labels: Sequence[int]) -> frozenset[int]:
    """Return the positions of the images that also occur with another label."""
    labels_of: dict[_Identity, set[int]] = {}
    for identity, label in zip(identities, labels, strict=True):
        labels_of.setdefault(identity, set()).add(label)
    return frozenset(position for position, identity in enumerate(identities) if len(labels_of[identity]) > 1)


def _check_classes(labels: Int[Tensor, " images"], class_names: Sequence[str]) -> None:
    if len(labels.unique()) < 2:
        raise ValueError(
            f"the labels cannot be judged: expected at least 2 classes with 3 different images, got "
            f"{len(labels.unique())} of {len(class_names)}: add images"
        )


def _features(
    images: Float[Tensor, "images maps height width"],
    kept: Int[Tensor, " kept"],
    seed: int,
    device: torch.device,
    show: Callable[[str], None],
) -> Float[Tensor, "kept statistics"]:
    """Compute the invariant features of some images, by a network with random weights."""
    examples = canonical_pictures(images[kept[:EXAMINED_IMAGES]])
    layers = feature_architecture(examples)
    with seeded(seed):
        network = untrained_network(layers, examples, window=choose_window("auto", layers, examples).window).to(device)
    features: list[Tensor] = []
    for positions in kept.split(limit_batch_size(BATCH_SIZE, *images.shape[2:])):
        features.append(apply_in_batches(network, [canonical_pictures(images[positions])], network.features))
        show(f"computing features: {sum(map(len, features))} of {len(kept)} images")
    return torch.cat(features)


def _judge(
    features: Float[Tensor, "images statistics"],
    labels: Int[Tensor, " images"],
    folds: Int[Tensor, " images"],
    seed: int,
    show: Callable[[str], None],
) -> tuple[LabelErrors, float]:
    """Return what is wrong with each label, and the cross-validated accuracy in per cent.

    In the first round the regressions are fitted to all labels, and in later ones only to those that are not
    suspicious. The probabilities of the later rounds are averaged.
    """
    classes, compact = labels.unique(return_inverse=True)
    counter, total = count(1), ROUNDS * len(folds.unique())
    is_drawn = _draw(compact, MAX_FITTED_IMAGES, seed)
    is_used, later = is_drawn, list[Tensor]()
    accuracy = 0.0
    for number in range(ROUNDS):
        logits = out_of_sample_logits(
            features, compact, folds, len(classes), is_used, lambda: show(f"fitting {next(counter)} of {total}")
        )
        probabilities = logits.softmax(1)
        if number == 0:
            accuracy = 100 * float((logits.argmax(1) == compact).double().mean())
        else:
            later.append(probabilities)
        is_used = is_drawn & ~find_label_errors(probabilities, compact).is_suspicious
        is_used = _keep_every_class(is_used, is_drawn, compact, folds)
    errors = find_label_errors(torch.stack(later).mean(0), compact)
    return errors._replace(suggested=classes[errors.suggested]), accuracy


def _draw(labels: Int[Tensor, " images"], maximum: int, seed: int) -> Bool[Tensor, " images"]:
    """Draw images at random, with at least ten of each class that has ten or more."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    is_drawn = torch.zeros(len(labels), dtype=torch.bool)
    is_drawn[order[:maximum]] = True
    for label in labels.unique():
        is_drawn[order[labels[order] == label][:10]] = True
    return is_drawn


def _keep_every_class(
    is_used: Bool[Tensor, " images"],
    is_drawn: Bool[Tensor, " images"],
    labels: Int[Tensor, " images"],
    folds: Int[Tensor, " images"],
) -> Bool[Tensor, " images"]:
    """Use all drawn images of a class again that would have none left outside some fold."""
    result = is_used.clone()
    for label in labels.unique():
        of_class = labels == label
        if any(not (is_used & of_class & (folds != fold)).any() for fold in folds.unique()):
            result[of_class] = is_drawn[of_class]
    return result


def _predicted_labels(
    errors: LabelErrors, kept: Int[Tensor, " kept"], labelled: LabelledData
) -> tuple[list[LabelSuggestion], int]:
    """Return the suspicious labels, the most suspicious first, and how many more there are than may be listed."""
    suspicious = torch.nonzero(errors.is_suspicious).flatten().tolist()
    ranked = sorted(suspicious, key=lambda place: (-round(float(errors.score[place]), 6), place))
    shown = ranked[: max(1, int(MAX_SHARE * len(kept)))]
    suggestions = [
        _suggestion(labelled, int(kept[place]), int(errors.suggested[place]), float(errors.score[place]))
        for place in shown
    ]
    return suggestions, len(ranked) - len(shown)


def _suggestion(labelled: LabelledData, position: int, suggested: int, score: float) -> LabelSuggestion:
    return LabelSuggestion(
        path=None if labelled.paths is None else str(labelled.paths[position]),
        position=position,
        label=labelled.class_names[int(labelled.images.labels[position])],
        suggested=labelled.class_names[suggested],
        score=round(score, 6),
        evidence="predicted",
    )


def _conflicting_labels(
    conflicting: frozenset[int], identities: Sequence[_Identity], labelled: LabelledData
) -> list[LabelSuggestion]:
    """Return the images that also occur with another label, with the most frequent other label of the picture."""
    labels_of: dict[_Identity, list[int]] = {}
    for position in conflicting:
        labels_of.setdefault(identities[position], []).append(int(labelled.images.labels[position]))
    suggestions = []
    for position in sorted(conflicting, key=lambda place: (identities[place], labelled.name(place))):
        current_label = int(labelled.images.labels[position])
        others = [label for label in labels_of[identities[position]] if label != current_label]
        suggested = max(sorted(set(others)), key=others.count)
        predicted = _suggestion(labelled, position, suggested, 1.0)
        suggestions.append(LabelSuggestion(**vars(predicted) | {"evidence": "identical image"}))
    return suggestions
