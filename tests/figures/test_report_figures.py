from dataclasses import replace

from tigranet.evaluation.training_history import TrainingHistory
from tigranet.figures.report_figures import report_figures

CURVES = {f"{variable}_{quantity}" for variable in ("angle", "shift") for quantity in ("accuracy", "confidence")}


def test_only_what_was_measured_is_drawn(measured):
    report, _ = measured
    figures = report_figures(replace(report, calibration=None, rejection_curve=(), history=None))
    assert set(figures) == {"change", "confusion", *CURVES}
    assert all(figure.lstrip().startswith("<svg") for figure in figures.values())


def test_the_training_is_drawn_with_and_without_validation(measured):
    report, _ = measured
    history = TrainingHistory((1, 2, 3), (1.0, 0.5, 0.25), (2,), (0.6,), (90.0,), 200.0)
    unvalidated = replace(history, validation_epochs=(), validation_losses=(), validation_accuracies=())
    complete, shorter = (report_figures(replace(report, history=each)) for each in (history, unvalidated))
    assert set(complete) - set(shorter) == {"validation"}
    assert "losses" in shorter


def test_every_network_has_a_curve_and_an_output_that_changes(measured):
    report, _ = measured
    figures = report_figures(report)
    for subject in report.subjects:
        assert subject.name in figures["angle_accuracy"]
    assert "features" in figures["change"]
