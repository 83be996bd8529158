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
from tigranet.evaluation.report import report_on


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
def found(net, data):
    return report_on(net, data, ConvNet("C[2]-P[2]", 3, 12), seed=3, made={"command": "tigranet report"})


def test_the_network_comes_first_and_its_numbers_are_its_own(found, net, data):
    ours, rival = found.subjects
    assert (ours.name, rival.name) == ("TIGraNet", "plain CNN")
    assert (ours.architecture, rival.architecture) == ("SC[2,2]-DP[40]-S[2]", "C[2]-P[2]")
    assert 100 * ours.right / 14 == pytest.approx(accuracy(net, data.test)) == pytest.approx(ours.robustness.upright)
    assert ours.by_angle.accuracy[0] == pytest.approx(ours.robustness.upright)
    assert set(ours.change) == {"features", "logits"}
    assert set(rival.change) == {"logits"}


def test_quarter_turns_are_exact_to_the_image(found):
    ours = found.subjects[0]
    assert ours.exact()
    assert [(turn.degrees, turn.right, turn.changed) for turn in ours.quarter_turns] == [
        (degrees, ours.right, 0) for degrees in (90, 180, 270)
    ]
    at = ours.by_angle.at
    assert all(ours.change["logits"][at.index(degrees)] < 1e-4 for degrees in (90, 180, 270))
    assert ours.change["logits"][at.index(45)] > 1e-3


def test_the_table_of_classes_agrees_with_the_matrix(found):
    assert sum(map(sum, found.confusion)) == 14
    assert sum(found.confusion[label][label] for label in range(3)) == found.subjects[0].right
    assert found.mistakes == 14 - found.subjects[0].right
    assert [row.support for row in found.classes] == [sum(row) for row in found.confusion] == [7, 7, 0]
    assert found.classes[2].recall is None


def test_the_data_are_described(found):
    assert found.data.images == {"train": (4, 4, 0), "validation": (2, 2, 0), "test": (7, 7, 0)}
    assert (found.data.size, found.data.channels, found.data.outside) == ((12, 12), 1, "reflection")


def test_it_is_plain_json_without_nan(found):
    text = json.dumps(found.to_json(), allow_nan=False)
    read = json.loads(text)
    assert read["subjects"][0]["robustness"]["moved"]["rotated"]["draws"] == 10
    assert read["subjects"][1]["by_shift"]["at"] == [0, 1, 2, 3]
    assert read["made"]["versions"]["tigranet"]
    assert read["seed"] == 3


def test_the_same_arguments_give_the_same_numbers(found, net, data):
    again = report_on(net, data, seed=3)
    assert len(again.subjects) == 1
    assert again.subjects[0] == found.subjects[0]


def test_the_curves_of_many_images_are_drawn_with_some(net, data):
    some = report_on(net, data, curve_images=5)
    assert some.subjects[0].by_angle.images == some.subjects[0].by_shift.images == 5
    assert some.subjects[0].robustness.images == 14
    with pytest.raises(ValueError, match="the curves need at least 1 image, got 0"):
        report_on(net, data, curve_images=0)


def test_progress_is_drawn_to_its_end(net, data, monkeypatch):
    ends: list[bool] = []
    stop = Progress.stop
    monkeypatch.setattr(Progress, "stop", lambda bar: ends.append(bar.tasks[0].finished) or stop(bar))
    few = replace(data, test=data.test.take([0, 1, 2]))
    report_on(net, few, ConvNet("C[2]-P[2]", 3, 12), console=Console(file=io.StringIO()))
    assert ends == [True]


def test_a_model_of_other_data_is_refused(data):
    with pytest.raises(ValueError, match="the model has 5 classes and reads 1 channels, noise has 3 and 1"):
        report_on(TIGraNet("SC[2,2]-S[2]", 5), data)
