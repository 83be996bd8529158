"""What a reader of a report can do next. The advice follows from the measured numbers by fixed rules."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from tigranet.data.sources.registry import REGISTRY
from tigranet.evaluation.report import ROTATED_CNN, WIDE_INTERVAL, Report
from tigranet.evaluation.sample_size import images_for_width
from tigranet.quoted_text import shorten

MAX_NAME_LENGTH = 60
"""Names of classes are shortened to this many characters."""
MAX_NAMES = 3
"""Largest number of classes or files that one step names."""
GOOD_RECALL = 0.9
"""Classes with a smaller share of right answers need more images."""
CONFUSED_IMAGES, CONFUSED_SHARE = 3, 0.15
"""Two classes are confused if at least this many images, and this share of a class, are taken for the other."""
SUSPECT_PROBABILITY = 0.9
"""An image with a wrong answer of at least this probability may have a wrong label."""
MIN_ACCURACY_OF_ANSWERS, LEAST_COVERAGE = 0.99, 0.5
"""A rejection level is recommended if this share of the answers is right and this share of the images is answered."""
LARGE_DIFFERENCE = 2.0
"""Difference between two networks, in percentage points, that is worth a sentence."""
FALLING, RISING = 0.97, 1.15
"""Ratios of validation losses from which a training was too short, and from which it went on for too long."""
NEW_MODEL, NEW_IMAGES = "new-model/", "new_images/"
"""Paths in commands that a reader replaces."""


@dataclass(frozen=True)
class NextStep:
    """One piece of advice."""

    title: str
    """What to do, in a few words."""
    text: str
    """Why, with the numbers that it follows from."""
    command: str | None = None
    """A command that does it, if there is one."""


def next_steps(report: Report) -> tuple[NextStep, ...]:
    """Return what the results of a report suggest, the most important first.

    Args:
        report: The measurements.

    Returns:
        At least one step. The last one is always how to use the network.
    """
    steps = [rule(report) for rule in RULES]
    return tuple(step for step in steps if step is not None)


def _test_on_more_images(report: Report) -> NextStep | None:
    network = report.subjects[0]
    if report.part != "test":
        text = f"All numbers are those of {report.part} images. Put images that were not used for training into test/."
        return NextStep("Add a test set", text)
    width = network.interval.high - network.interval.low
    if width <= WIDE_INTERVAL:
        return None
    needed = images_for_width(network.robustness.upright, WIDE_INTERVAL)
    text = (
        f"With {network.robustness.images} test images the accuracy is known to {width:.0f} points. "
        f"About {needed} images would narrow this to {WIDE_INTERVAL:.0f} points."
    )
    return NextStep("Measure on more test images", text)


def _train_fully(report: Report) -> NextStep | None:
    if not report.made.get("quick"):
        return None
    text = "This is a quick model: only its last layer was fitted. A full training usually takes minutes."
    return NextStep("Train the whole network", text, _train_command(report))


def _check_labels(report: Report) -> NextStep | None:
    suspects = [mistake for mistake in report.confident_mistakes if mistake.probability >= SUSPECT_PROBABILITY]
    if not suspects:
        return None
    descriptions = [
        shorten(mistake.file) if mistake.file else f"{report.part} image {mistake.image}"
        for mistake in suspects[:MAX_NAMES]
    ]
    count = f"{len(suspects)} image{'' if len(suspects) == 1 else 's'}"
    text = (
        f"The network contradicts the label of {count} with a probability of at least {SUSPECT_PROBABILITY:.0%}. "
        f"Wrong labels are found among such images: {_enumerate(descriptions, len(suspects))}."
    )
    return NextStep("Check these labels", text)


def _add_images(report: Report) -> NextStep | None:
    train_counts = report.data.images["train"]
    weak = [
        (row.support - round((row.recall or 0.0) * row.support), row, count)
        for row, count in zip(report.classes, train_counts, strict=True)
        if row.recall is not None and row.recall < GOOD_RECALL
    ]
    if not weak:
        return None
    weak.sort(key=lambda entry: -entry[0])
    descriptions = [
        f"{_quote(row.name)} ({row.support - errors} of {row.support} right, {count} training images)"
        for errors, row, count in weak[:MAX_NAMES]
    ]
    has_own_images = report.made.get("data") not in (None, *REGISTRY)
    text = f"These classes have the most wrong answers: {_enumerate(descriptions, len(weak))}."
    if has_own_images:
        text += " After adding images of them, continue from this network:"
    options = f"--init {_model(report)}"
    return NextStep(
        "Add training images of weak classes", text, _train_command(report, options) if has_own_images else None
    )


def _separate_classes(report: Report) -> NextStep | None:
    names = report.data.class_names
    pairs = [
        (count, truth, answer)
        for truth, row in enumerate(report.confusion)
        for answer, count in enumerate(row)
        if truth != answer and count >= max(CONFUSED_IMAGES, CONFUSED_SHARE * sum(row))
    ]
    if not pairs:
        return None
    count, truth, answer = max(pairs, key=lambda pair: pair[0])
    text = (
        f"{count} of {sum(report.confusion[truth])} images of {_quote(names[truth])} are taken for "
        f"{_quote(names[answer])}. If people cannot tell them apart in these images either, make them one class, or "
        "use larger images (--size)."
    )
    return NextStep("Look at the two classes that are confused most", text)


def _train_longer_or_shorter(report: Report) -> NextStep | None:
    history = report.history
    if history is None or len(history.validation_losses) < 4:
        return None
    losses = history.validation_losses
    quarter = len(losses) // 4
    epochs = max(history.epochs)
    earlier, best, last = min(losses[:-quarter]), min(losses), losses[-1]
    if last == best and best < FALLING * earlier:
        text = f"The validation loss was still falling after {epochs} epochs."
        return NextStep("Train longer", text, _train_command(report, f"--epochs {2 * epochs}"))
    if last > RISING * best:
        text = f"The validation loss was lowest ({best:.3f}) before the last epoch ({last:.3f})."
        return NextStep("Keep the best weights", text, _train_command(report, "--keep best"))
    return None


def _compare_with_rotated_cnn(report: Report) -> NextStep | None:
    rivals = [subject for subject in report.subjects[1:] if subject.name == ROTATED_CNN]
    if not rivals:
        return None
    ours, other = (subject.robustness.moved["rotated"].mean for subject in (report.subjects[0], rivals[0]))
    if other - ours < LARGE_DIFFERENCE:
        return None
    text = (
        f"On rotated images the {ROTATED_CNN} reaches {other:.1f}\u00a0%, this network {ours:.1f}\u00a0%. A longer "
        "training may close the gap; if it does not, that CNN is the better choice for these images."
    )
    epochs = 2 * max(report.history.epochs) if report.history else None
    return NextStep(
        "Compare with a longer training", text, _train_command(report, f"--epochs {epochs}") if epochs else None
    )


def _use(report: Report) -> NextStep:
    predict = f"tigranet predict {_model(report)} {NEW_IMAGES} --csv answers.csv"
    everything = report.rejection[0] if report.rejection else None
    accurate_levels = [
        level
        for level in report.rejection
        if level.probability > 0
        and level.coverage >= LEAST_COVERAGE
        and (level.accuracy or 0.0) >= MIN_ACCURACY_OF_ANSWERS
    ]
    if everything is None or (everything.accuracy or 0.0) >= MIN_ACCURACY_OF_ANSWERS:
        text = "Classify new images. With --reject 0.9, images that the network is not sure of are marked as unknown."
        return NextStep("Use the network", text, predict)
    if not accurate_levels:
        text = (
            "No probability in the table makes 99\u00a0% of the answers right. Look at the label sets of --coverage "
            "instead: they contain the true class with the probability that you choose."
        )
        return NextStep("Use the network with care", text, f"{predict} --coverage 0.95")
    level = accurate_levels[0]
    text = (
        f"Answers of a probability of at least {level.probability:g}: {100 * level.coverage:.0f}\u00a0% of the "
        f"{report.part} images are answered, and {100 * (level.accuracy or 0.0):.1f}\u00a0% of these answers are "
        "right. The others are marked as unknown."
    )
    return NextStep("Use the network, and let it say 'unknown'", text, f"{predict} --reject {level.probability:g}")


RULES: tuple[Callable[[Report], NextStep | None], ...] = (
    _test_on_more_images,
    _train_fully,
    _check_labels,
    _add_images,
    _separate_classes,
    _train_longer_or_shorter,
    _compare_with_rotated_cnn,
    _use,
)
"""The rules, the most important first."""


def _quote(name: str) -> str:
    return f"'{shorten(name, MAX_NAME_LENGTH)}'"


def _model(report: Report) -> str:
    return shlex.quote(str(report.made.get("model", "model/")))


def _train_command(report: Report, options: str = "") -> str:
    data = shlex.quote(str(report.made.get("data") or "my_images/"))
    return f"tigranet train {data} -o {NEW_MODEL} {options}".rstrip()


def _enumerate(names: list[str], total: int) -> str:
    """Return some of several names as one phrase.

    >>> _enumerate(["a", "b"], 2), _enumerate(["a", "b", "c"], 9)
    ('a, b', 'a, b, c and 6 more')
    """
    return ", ".join(names) + (f" and {total - len(names)} more" if total > len(names) else "")
