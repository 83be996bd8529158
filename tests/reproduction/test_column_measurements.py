import torch
from torch import nn

from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.classification_scores import classification_scores
from tigranet.evaluation.rotation_protocol import mean_colour, rotation_protocol
from tigranet.reproduction import column_measurements
from tigranet.reproduction.column_measurements import measure_columns
from tigranet.training import Recipe


def part(count):
    return LabelledImages(torch.rand(count, 1, 6, 6), torch.arange(count) % 2)


DATA = DataSet("data", ("a", "b"), part(11), part(4), part(8))
NETWORK = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
RECIPE = Recipe(epochs=3, batch_size=4)


def test_only_what_the_columns_need_is_measured():
    assert measure_columns(NETWORK, DATA, RECIPE, ("test", "moved", "minutes", "error")) == {}
    assert list(measure_columns(NETWORK, DATA, RECIPE, ("at_45",))) == ["rotations"]
    assert list(measure_columns(NETWORK, DATA, RECIPE, ("log_loss",))) == ["scores"]


def test_test_images_are_measured_with_the_mean_colour_of_the_training_images():
    record = measure_columns(NETWORK, DATA, RECIPE, ("protocol", "balanced"))
    rotations = rotation_protocol(NETWORK, DATA.test.images, DATA.test.labels, mean_colour(DATA.train.images))
    scores = classification_scores(NETWORK, DATA.test, DATA.class_names)
    assert record["rotations"] == rotations.to_json()
    assert record["scores"]["balanced_accuracy"] == scores.balanced_accuracy


def test_the_time_on_a_cpu_is_that_of_all_steps(monkeypatch):
    calls = []
    monkeypatch.setattr(column_measurements, "cpu_step_seconds", lambda *arguments: calls.append(arguments) or 10.0)
    assert measure_columns(NETWORK, DATA, RECIPE, ("cpu_minutes",)) == {"cpu_seconds": 10.0 * 3 * 3}
    assert calls == [(NETWORK, (1, 6, 6), 2, 4)]
    measure_columns(NETWORK, DATA, Recipe(epochs=1, batch_size=50), ("cpu_minutes",))
    assert calls[1][3] == 11  # there are not more images than this
