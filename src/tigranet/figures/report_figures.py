"""The figures of the report page, as SVG inside the page."""

from collections.abc import Callable
from functools import partial

from markupsafe import Markup
from matplotlib.axes import Axes

from tigranet.evaluation.report import NETWORK, Report
from tigranet.figures.confusion import confusion_size, draw_confusion
from tigranet.figures.curves import (
    LINE_STYLES,
    SECOND_NETWORK_STYLE,
    Line,
    draw_against_angle,
    draw_against_shift,
    draw_max_change,
)
from tigranet.figures.figure_output import inline_svg
from tigranet.figures.rejection import draw_rejection
from tigranet.figures.reliability import draw_reliability
from tigranet.figures.report_text import replace_undecodable
from tigranet.figures.training_curve import draw_losses, draw_validation_accuracy

CURVE_INCHES = (5.0, 3.1)
"""Size of a figure: two fit side by side on a desktop, one on a phone."""


def report_figures(report: Report) -> dict[str, Markup]:
    """Draw all figures of the page.

    Args:
        report: The measurements.

    Returns:
        SVG elements by name. Figures of what was not measured are not among them.
    """
    names = [replace_undecodable(name) for name in report.data.class_names]
    figures = {
        "change": _svg(partial(draw_max_change, lines=_change_lines(report)), "change of the output against angle"),
        "confusion": _svg(
            lambda axes: draw_confusion(axes, report.confusion, names), "confusion matrix", confusion_size(names)
        ),
    }
    if report.calibration is not None:
        curves = {"as predicted": report.calibration.bins}
        if report.calibration.scaled_bins is not None:
            curves["with temperature"] = report.calibration.scaled_bins
        figures["reliability"] = _svg(partial(draw_reliability, curves=curves), "accuracy against confidence")
    if report.rejection_curve:
        draw = partial(draw_rejection, levels=report.rejection_curve)
        figures["rejection"] = _svg(draw, "share of answered images, and of right answers, against probability")
    if report.history is not None:
        figures["losses"] = _svg(partial(draw_losses, history=report.history), "loss against epoch")
        if report.history.validation_epochs:
            draw = partial(draw_validation_accuracy, history=report.history)
            figures["validation"] = _svg(draw, "validation accuracy against epoch")
    largest_class = 100 * max(sum(row) for row in report.confusion) / max(1, sum(map(sum, report.confusion)))
    for variable, draw_curve in (("angle", draw_against_angle), ("shift", draw_against_shift)):
        for quantity, label, chance in (
            ("accuracy", "accuracy", largest_class),
            ("confidence", "mean confidence", None),
        ):
            lines = _curve_lines(report, f"by_{variable}", quantity)
            draw = partial(draw_curve, lines=lines, ylabel=f"{label} (%)", chance=chance)
            figures[f"{variable}_{quantity}"] = _svg(draw, f"{label} against {variable}")
    return figures


def _svg(draw: Callable[[Axes], None], title: str, size: tuple[float, float] = CURVE_INCHES) -> Markup:
    return Markup(inline_svg(draw, size, title))


def _curve_lines(report: Report, curve_name: str, quantity: str) -> list[Line]:
    """Return one line per network."""
    curves = [getattr(subject, curve_name) for subject in report.subjects]
    return [
        Line(subject.name, style, curve.at, getattr(curve, quantity))
        for subject, curve, style in zip(report.subjects, curves, LINE_STYLES, strict=False)
    ]


def _change_lines(report: Report) -> list[Line]:
    """Return one line per measured output: two of the network, and one of each CNN."""
    lines = []
    for subject, style in zip(report.subjects, LINE_STYLES, strict=False):
        for number, (output, values) in enumerate(subject.change.items()):
            name = output if subject.name == NETWORK else f"{output}, {subject.name}"
            lines.append(Line(name, SECOND_NETWORK_STYLE if number else style, subject.by_angle.at, values))
    return lines
