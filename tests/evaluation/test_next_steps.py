import shlex
from dataclasses import replace

import pytest
import torch
import typer

from tigranet import TIGraNet
from tigranet.cli.app import app
from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.accuracy_interval import accuracy_interval
from tigranet.evaluation.class_report import Mistake
from tigranet.evaluation.next_steps import next_steps
from tigranet.evaluation.rejection import RejectionLevel
from tigranet.evaluation.report import ROTATED_CNN, report_on
from tigranet.evaluation.sample_size import images_for_width
from tigranet.evaluation.training_history import TrainingHistory

ALL_RIGHT = (RejectionLevel(0.0, 1000, 1000, 1000),)


@pytest.fixture(scope="module")
def flawless():
    """A report without anything to improve, of 1000 images."""
    torch.manual_seed(0)
    images = LabelledImages(torch.rand(6, 1, 8, 8), torch.arange(6) % 2)
    data = DataSet("screws", ("bolt", "nut"), images, images, images)
    report = report_on(TIGraNet("SC[2,2]-S[2]", 2).eval(), data, provenance={"model": "a model", "data": "my screws"})
    robustness = replace(report.subjects[0].robustness, images=1000, upright=100.0)
    network = replace(report.subjects[0], robustness=robustness, interval=accuracy_interval(100.0, 1000))
    classes = tuple(replace(row, support=500, precision=1.0, recall=1.0, f1=1.0) for row in report.classes)
    return replace(
        report,
        subjects=(network,),
        classes=classes,
        confusion=((500, 0), (0, 500)),
        mistakes=0,
        confident_mistakes=(),
        rejection=ALL_RIGHT,
    )


def parse(command):
    """Parse a command as the command line does, and return its name and its parameters."""
    _, name, *arguments = shlex.split(command)
    with typer.main.get_command(app).commands[name].make_context(name, arguments) as context:
        return name, context.params


def titles(report):
    steps = next_steps(report)
    for step in steps:
        if step.command is not None:
            parse(step.command)
    return [step.title for step in steps]


def test_a_flawless_network_is_to_be_used(flawless):
    (step,) = next_steps(flawless)
    assert step.title == "Use the network"
    name, parameters = parse(step.command)
    assert (name, str(parameters["model"])) == ("predict", "a model")


def test_few_test_images_are_said_to_be_few_and_how_many_are_needed(flawless):
    few = replace(flawless.subjects[0], robustness=replace(flawless.subjects[0].robustness, images=20, upright=95.0))
    report = replace(flawless, subjects=(replace(few, interval=accuracy_interval(95.0, 20)),))
    step = next_steps(report)[0]
    assert step.title == "Measure on more test images"
    assert "20 test images" in step.text
    assert f"About {images_for_width(95.0, 10.0)} images" in step.text
    assert titles(replace(report, part="validation"))[0] == "Add a test set"


def test_a_quick_model_can_be_trained(flawless):
    step = next_steps(replace(flawless, made=flawless.made | {"quick": True}))[0]
    assert parse(step.command)[1]["data"] == "my screws"


def test_confident_errors_may_be_wrong_labels(flawless):
    mistakes = tuple(Mistake(image, "nut", "bolt", p, f"bolt/{image}.png") for image, p in enumerate((0.99, 0.93, 0.5)))
    step = next_steps(replace(flawless, confident_mistakes=mistakes))[0]
    assert step.title == "Check these labels"
    assert "2 images" in step.text
    assert "bolt/0.png, bolt/1.png." in step.text


def test_weak_classes_need_images_and_confused_ones_a_look(flawless):
    classes = (flawless.classes[0], replace(flawless.classes[1], support=20, recall=0.5))
    report = replace(flawless, classes=classes, confusion=((500, 0), (10, 10)))
    weak, confused, _ = next_steps(report)
    assert "'nut' (10 of 20 right, 3 training images)" in weak.text
    assert str(parse(weak.command)[1]["init"]) == "a model"
    assert "10 of 20 images of 'nut' are taken for 'bolt'" in confused.text
    named = replace(report, made=report.made | {"data": "mnist-012"})
    assert next_steps(named)[0].command is None  # nobody can add images to a named data set


def test_the_training_curve_decides_about_the_number_of_epochs(flawless):
    history = TrainingHistory(
        tuple(range(1, 9)), (1.0,) * 8, tuple(range(1, 9)), (8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0), (50.0,) * 8, 1.0
    )
    longer = next_steps(replace(flawless, history=history))[0]
    assert parse(longer.command)[1]["epochs"] == 16
    rising = replace(history, validation_losses=history.validation_losses[::-1])
    assert parse(next_steps(replace(flawless, history=rising))[0].command)[1]["keep"] == "best"
    settled = replace(history, validation_losses=(3.0, 2.0, *[1.0] * 6))
    assert titles(replace(flawless, history=settled)) == ["Use the network"]


def test_a_better_rival_is_named(flawless):
    network = flawless.subjects[0]
    worse = replace(
        network.robustness, moved={how: a._replace(mean=80.0) for how, a in network.robustness.moved.items()}
    )
    better = replace(
        network.robustness, moved={how: a._replace(mean=90.0) for how, a in network.robustness.moved.items()}
    )
    subjects = (replace(network, robustness=worse), replace(network, name=ROTATED_CNN, robustness=better))
    step = next_steps(replace(flawless, subjects=subjects))[0]
    assert "90.0\u00a0%" in step.text
    assert "80.0\u00a0%" in step.text
    assert titles(replace(flawless, subjects=subjects[::-1])) == ["Use the network"]


def test_the_lowest_sufficient_rejection_level_is_recommended(flawless):
    levels = tuple(
        RejectionLevel(probability, 100, answered, right)
        for probability, answered, right in [(0.0, 100, 90), (0.5, 95, 88), (0.9, 80, 80), (0.95, 70, 70)]
    )
    step = next_steps(replace(flawless, rejection=levels))[-1]
    assert parse(step.command)[1]["reject"] == 0.9
    assert "80\u00a0% of the test images are answered" in step.text
    none = next_steps(replace(flawless, rejection=levels[:2]))[-1]
    assert parse(none.command)[1]["coverage"] == 0.95
