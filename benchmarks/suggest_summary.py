"""Tables and a figure of the measurements of ``benchmarks.suggest``."""

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

import matplotlib
from matplotlib.figure import Figure

from tigranet.atomic_files import atomic_write
from tigranet.figures.figure_output import FIGURE_STYLE, save_png_and_svg

TARGETS = (80.0, 85.0, 90.0)
"""Accuracies in per cent whose number of labelled images is reported."""
STYLES = {
    "random": {"color": "0.45", "linestyle": (0, (4, 2))},
    "diverse": {"color": "#e69f00"},
    "uncertain": {"color": "#009e73"},
    "both": {"color": "#0072b2", "linewidth": 2.4},
}
NAMES = {"random": "random", "diverse": "diverse", "uncertain": "uncertain", "both": "both (tigranet suggest)"}
CHOSEN_ON = "0"
"""The draw of classes that the strategy was chosen on."""

Row = dict[str, str]


def write_summary(images: Path, labels: Path) -> None:
    """Write a page and a figure beside the CSV files.

    Args:
        images: The learning curves.
        labels: The measurements of wrong labels.
    """
    page = images.with_suffix(".md")
    curves = read_rows(images)
    with atomic_write(page) as file:
        file.write("# Suggestions: images to label, and labels to check\n\n")
        file.write(f"`python -m benchmarks.suggest --data-dir data/ --output results/{images.name}`\n")
        if curves:
            file.write(image_section(curves, page.stem))
        if rows := read_rows(labels):
            file.write(label_section(rows))
    if curves:
        draw_curves(images.with_suffix(""), [row for row in curves if row["draw"] != CHOSEN_ON] or curves)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file, none if it does not exist."""
    return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []


def images_needed(curve: Sequence[tuple[int, float]], target: float) -> int | None:
    """Return the first number of labelled images from which two rounds in succession reach an accuracy.

    Args:
        curve: Numbers of labelled images, and accuracies in per cent.
        target: The accuracy.

    Returns:
        The number; None if it is not reached.
    """
    for (count, accuracy), (_, following) in zip(curve, [*curve[1:], (0, 100.0)], strict=True):
        if accuracy >= target and following >= target:
            return count
    return None


def curve_of(row: Row) -> list[tuple[int, float]]:
    """Return numbers of labelled images and accuracies of one run."""
    return [(int(name), float(value)) for name, value in row.items() if name.isdecimal()]


def mean_curve(rows: Sequence[Row]) -> list[tuple[int, float]]:
    """Return the mean of several runs."""
    curves = [curve_of(row) for row in rows]
    return [(points[0][0], mean(accuracy for _, accuracy in points)) for points in zip(*curves, strict=True)]


def image_section(rows: Sequence[Row], figure: str) -> str:
    """Return the part about images, as Markdown."""
    counts = [count for count, _ in curve_of(rows[0])]
    shown = [count for count in (40, 100, 200, 300, 400, 500) if count in counts]
    text = (
        f"\n## Images to label\n\n![accuracy against the number of labelled images]({figure}.png)\n\n"
        "Plankton, 8 classes, a pool of 1,500 images, 40 labelled at random at first and 20 more per round; logistic "
        "regression on invariant features, tested on 400 other images. Means over seeds, in per cent. 'Images for' is "
        "the number of labelled images from which the mean curve stays at that accuracy for two rounds. *uncertain*: "
        "smallest difference of the two largest probabilities. *diverse*: k-means++ on the features. *both*: what "
        "`tigranet suggest` does, k-means++ on gradients of the last layer. Strategies were first compared on the "
        f"classes of draw {CHOSEN_ON}; the other draws have other classes. Here *uncertain* alone is as good as *both* "
        "or better. `tigranet suggest` uses *both*, so that of images that are nearly alike, such as frames of one "
        "film, not all are suggested.\n\n"
    )
    header = ["draw", "strategy", "seeds", *(f"{count} images" for count in shown)]
    header += [f"images for {target:.0f} %" for target in TARGETS] + ["mean of all rounds"]
    text += "| " + " | ".join(header) + " |\n|" + " --- |" * len(header) + "\n"
    for draw in sorted({row["draw"] for row in rows}, key=lambda draw: (draw == CHOSEN_ON, draw)):
        for strategy in STYLES:
            runs = [row for row in rows if (row["draw"], row["strategy"]) == (draw, strategy)]
            if not runs:
                continue
            curve = mean_curve(runs)
            areas = [mean(accuracy for _, accuracy in curve_of(row)) for row in runs]
            spread = f" ± {stdev(areas):.1f}" if len(areas) > 1 else ""
            cells = [draw, NAMES[strategy], str(len(runs)), *(f"{dict(curve)[count]:.1f}" for count in shown)]
            cells += [str(images_needed(curve, target) or f"> {counts[-1]}") for target in TARGETS]
            text += "| " + " | ".join([*cells, f"{mean(areas):.1f}{spread}"]) + " |\n"
    return text


def label_section(rows: Sequence[Row]) -> str:
    """Return the part about labels, as Markdown."""
    text = (
        "\n## Labels to check\n\n1,000 images, of which 5 or 10 % get a random other label. *accuracy*: share of the "
        "given labels that the cross-validated classifier predicts. *suggested*: labels that `tigranet suggest` lists. "
        "*precision* and *recall*: share of these that are wrong, and of the wrong ones that are listed. *first*: "
        "precision of as many of the first suggestions as there are wrong labels. Means over seeds, in per cent. "
        "Labels of the data sets that were wrong before count as correct.\n\n"
        "| data | wrong labels | seeds | accuracy | suggested | precision | recall | first | seconds |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    for data, share in dict.fromkeys((row["data"], row["wrong"]) for row in rows):
        runs = [row for row in rows if (row["data"], row["wrong"]) == (data, share)]
        names = ("accuracy", "suggested", "precision", "recall", "precision of the first", "seconds")
        values = [f"{mean(float(row[name]) for row in runs):.1f}" for name in names]
        text += f"| {data} | {runs[0]['wrong labels']} | {len(runs)} | " + " | ".join(values) + " |\n"
    return text


def draw_curves(path: Path, rows: Sequence[Row]) -> None:
    """Draw the accuracy against the number of labelled images, one panel per draw of classes."""
    draws = sorted({row["draw"] for row in rows})
    with matplotlib.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(4.6 * len(draws) + 0.4, 3.9), layout="constrained")
        panels = figure.subplots(1, len(draws), sharey=True, squeeze=False)[0]
        for axes, draw in zip(panels, draws, strict=True):
            for strategy, style in STYLES.items():
                runs = [row for row in rows if (row["draw"], row["strategy"]) == (draw, strategy)]
                if not runs:
                    continue
                counts, accuracies = zip(*mean_curve(runs), strict=True)
                axes.plot(counts, accuracies, label=NAMES[strategy], **style)
            axes.axhline(90, color="0.8", linewidth=0.8, zorder=0)
            axes.set(xlabel="labelled images", title=f"plankton, draw {draw} of 8 classes")
            axes.title.set_fontsize(10)
            axes.grid(color="0.92", linewidth=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("accuracy on other images (%)")
        panels[-1].legend(frameon=False, loc="lower right")
        save_png_and_svg(figure, path)
