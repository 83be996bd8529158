import torch
from torch import nn

from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.classification_scores import classification_scores
from tigranet.evaluation.rotation_protocol import mean_colour, rotation_protocol
from tigranet.reproduction.column_measurements import measure_columns


def part(count):
    return LabelledImages(torch.rand(count, 1, 6, 6), torch.arange(count) % 2)


DATA = DataSet("data", ("a", "b"), part(11), part(4), part(8))
NETWORK = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))


def test_only_what_the_columns_need_is_measured():
    assert measure_columns(NETWORK, DATA, ("test", "moved", "minutes", "error")) == {}
    assert list(measure_columns(NETWORK, DATA, ("at_45",))) == ["rotations"]
    assert list(measure_columns(NETWORK, DATA, ("log_loss",))) == ["scores"]


def test_test_images_are_measured_with_the_mean_colour_of_the_training_images():
    record = measure_columns(NETWORK, DATA, ("protocol", "balanced"))
    rotations = rotation_protocol(NETWORK, DATA.test.images, DATA.test.labels, mean_colour(DATA.train.images))
    scores = classification_scores(NETWORK, DATA.test, DATA.class_names)
    assert record["rotations"] == rotations.to_json()
    assert record["scores"]["balanced_accuracy"] == scores.balanced_accuracy
