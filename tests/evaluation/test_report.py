import io
import json
from dataclasses import replace

import pytest
import torch
from rich.console import Console
from rich.progress import Progress

from tigranet import TIGraNet
from tigranet.baselines import ConvNet
from tigranet.data import DataSet, Isometry, LabelledImages
from tigranet.evaluation import accuracy
from tigranet.evaluation.accuracy_interval import accuracy_interval
from tigranet.evaluation.report import measured_part, report_on

CNN = {"plain CNN": ConvNet("C[2]-P[2]", 3, 12)}


@pytest.fixture(scope="module")
def data() -> DataSet:
    torch.manual_seed(0)
    parts = [LabelledImages(torch.rand(count, 1, 12, 12), torch.arange(count) % 2) for count in (8, 4, 14)]
    return DataSet("noise", ("bolt", "nut", "cat"), *parts, test_motion=Isometry(rotated=True, padding="reflection"))


@pytest.fixture(scope="module")
def net() -> TIGraNet:
    torch.manual_seed(0)
    return TIGraNet("SC[2,2]-DP[40]-S[2]", 3).eval()


@pytest.fixture(scope="module")
def report(net, data):
    return report_on(net, data, CNN, seed=3, provenance={"command": "tigranet report"})


def test_the_network_is_first_and_has_its_own_numbers(report, net, data):
    ours, cnn = report.subjects
    assert (ours.name, cnn.name) == ("TIGraNet", "plain CNN")
    assert (ours.architecture, cnn.architecture) == ("SC[2,2]-DP[40]-S[2]", "C[2]-P[2]")
    assert 100 * ours.right / 14 == pytest.approx(accuracy(net, data.test)) == pytest.approx(ours.robustness.upright)
    assert ours.by_angle.accuracy[0] == pytest.approx(ours.robustness.upright)
    assert set(ours.change) == {"features", "logits"}
    assert set(cnn.change) == {"logits"}
    assert ours.interval == accuracy_interval(100 * ours.right / 14, 14)


def test_the_examples_are_answers_of_the_network(report, data):
    answers = [answer for each in report.examples for answer in (*each.right, *each.wrong)]
    assert [each.name for each in report.examples] == ["bolt", "nut"]  # there is no image of a cat
    for answer in (*answers, *report.least_certain):
        assert answer.truth == data.class_names[int(data.test.labels[answer.image])]
        assert answer.is_right == (answer.answer == answer.truth)
    assert sum(each.wrong_count for each in report.examples) == report.mistakes
    at_zero = {each.image: each.classes["TIGraNet"][0] == each.truth for each in report.turned}
    assert len(at_zero) == 6
    assert all(at_zero[answer.image] == answer.is_right for answer in report.least_certain if answer.image in at_zero)


def test_all_answers_are_those_without_rejection(report):
    everything = report.rejection[0]
    assert (everything.probability, everything.answered) == (0, 14)
    assert everything.right == report.subjects[0].right


def test_few_images_are_a_warning(report):
    assert "14 images" in report.size_notice()
    many = replace(report.subjects[0], interval=accuracy_interval(95.0, 1000))
    assert replace(report, subjects=(many,)).size_notice() is None


def test_quarter_turns_change_no_prediction(report):
    ours = report.subjects[0]
    assert ours.exact()
    assert [(turn.degrees, turn.right, turn.changed) for turn in ours.quarter_turns] == [
        (degrees, ours.right, 0) for degrees in (90, 180, 270)
    ]
    at = ours.by_angle.at
    assert all(ours.change["logits"][at.index(degrees)] < 1e-4 for degrees in (90, 180, 270))
    assert ours.change["logits"][at.index(45)] > 1e-3


def test_the_metrics_of_the_classes_agree_with_the_confusion_matrix(report):
    assert sum(map(sum, report.confusion)) == 14
    assert sum(report.confusion[label][label] for label in range(3)) == report.subjects[0].right
    assert report.mistakes == 14 - report.subjects[0].right
    assert [metrics.support for metrics in report.classes] == [sum(row) for row in report.confusion] == [7, 7, 0]
    assert report.classes[2].recall is None


def test_the_data_are_described(report):
    assert report.data.images == {"train": (4, 4, 0), "validation": (2, 2, 0), "test": (7, 7, 0)}
    assert (report.data.size, report.data.channels, report.data.outside) == ((12, 12), 1, "reflection")


def test_it_can_be_written_as_json_without_nan(report):
    text = json.dumps(report.to_json(), allow_nan=False)
    read = json.loads(text)
    assert read["subjects"][0]["robustness"]["moved"]["rotated"]["draws"] == 10
    assert read["subjects"][1]["by_shift"]["at"] == [0, 1, 2, 3]
    assert read["made"]["versions"]["tigranet"]
    assert read["seed"] == 3


def test_the_same_arguments_give_the_same_numbers(report, net, data):
    again = report_on(net, data, seed=3)
    assert len(again.subjects) == 1
    assert again.subjects[0] == report.subjects[0]


def test_a_network_in_training_mode_has_the_same_report_and_keeps_its_moments(report, net, data):
    copy = TIGraNet(**net.config)
    copy.load_state_dict(net.state_dict())
    assert report_on(copy.train(), data, seed=3).subjects[0] == report.subjects[0]
    assert copy.training
    assert all(torch.equal(copy.state_dict()[name], tensor) for name, tensor in net.state_dict().items())


def test_the_curves_use_a_sample_of_many_images(net, data):
    report = report_on(net, data, curve_images=5)
    assert report.subjects[0].by_angle.images == report.subjects[0].by_shift.images == 5
    assert report.subjects[0].robustness.images == 14
    with pytest.raises(ValueError, match="at least 1 image, got curve_images=0"):
        report_on(net, data, curve_images=0)


def test_the_progress_bar_reaches_its_end(net, data, monkeypatch):
    finished: list[bool] = []
    stop = Progress.stop
    monkeypatch.setattr(Progress, "stop", lambda bar: finished.append(bar.tasks[0].finished) or stop(bar))
    few = replace(data, test=data.test.take([0, 1, 2]))
    report_on(net, few, CNN, console=Console(file=io.StringIO()))
    assert finished == [True]


def test_a_model_of_other_data_is_an_error(data):
    with pytest.raises(ValueError, match=r"5 classes .*1 channels, noise has 3 and 1"):
        report_on(TIGraNet("SC[2,2]-S[2]", 5), data)


def test_without_test_images_the_validation_images_are_measured_and_named(net, data):
    none = data.test.take(torch.zeros(0, dtype=torch.int64))
    report = report_on(net, replace(data, test=none, test_files=()), seed=3)
    assert report.part == "validation"
    assert report.data.images == {"train": (4, 4, 0), "validation": (2, 2, 0), "test": (0, 0, 0)}
    assert report.subjects[0].robustness.images == sum(map(sum, report.confusion)) == 4
    assert report.subjects[0].robustness.upright == accuracy(net, data.validation)
    numbers = report.to_json()
    assert numbers["part"] == "validation"
    assert "No test images" in numbers["notice"]
    assert "4 validation images" in numbers["notice"]
    with pytest.raises(ValueError, match=r"noise.*neither test images nor validation images"):
        report_on(net, replace(data, test=none, validation=none))


def test_test_images_are_measured_if_there_are_any(report, data):
    assert measured_part(data) == ("test", data)
    assert report.part == "test"
    assert report.to_json()["notice"] is None
