import numpy as np
import pytest
import torch

from tigranet.data import LabelledImages
from tigranet.evaluation.class_report import confident_mistakes, confusion_counts, metrics_by_class
from tigranet.evaluation.predictions import Predictions

NAMES = ("bolt", "nut", "washer", "cat")
DATA = LabelledImages(torch.rand(6, 1, 2, 2), torch.tensor([0, 0, 1, 1, 1, 2]))
PREDICTIONS = Predictions(torch.tensor([0, 1, 1, 1, 0, 1]), torch.tensor([0.9, 0.6, 0.5, 0.7, 0.8, 0.6]))


def test_the_confusion_matrix_has_true_classes_in_rows_and_predicted_classes_in_columns():
    expected = np.zeros((4, 4), dtype=int)
    for label, prediction in zip(DATA.labels.tolist(), PREDICTIONS.classes.tolist(), strict=True):
        expected[label, prediction] += 1
    assert np.array_equal(confusion_counts(DATA, PREDICTIONS, 4), expected)


def test_the_metrics_are_those_computed_by_hand():
    bolt, nut, washer, cat = metrics_by_class(DATA, PREDICTIONS, NAMES)
    assert (bolt.name, bolt.support, bolt.precision, bolt.recall) == ("bolt", 2, 1 / 2, 1 / 2)
    assert (nut.support, nut.precision, nut.recall) == (3, 2 / 4, 2 / 3)
    assert nut.f1 == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))
    assert (washer.support, washer.precision, washer.recall, washer.f1) == (1, None, 0, 0)
    assert (cat.support, cat.precision, cat.recall, cat.f1) == (0, None, None, None)


def test_mistakes_are_sorted_by_confidence_and_then_by_index():
    mistakes = confident_mistakes(DATA, PREDICTIONS, NAMES)
    assert [mistake.image for mistake in mistakes] == [4, 1, 5]
    assert (mistakes[0].answer, mistakes[0].truth) == ("bolt", "nut")
    assert mistakes[0].probability == pytest.approx(0.8)
    assert confident_mistakes(DATA, PREDICTIONS, NAMES, at_most=1) == mistakes[:1]


def test_a_mistake_has_the_path_of_its_file():
    files = [f"{number}.png" for number in range(6)]
    assert [mistake.file for mistake in confident_mistakes(DATA, PREDICTIONS, NAMES, files)] == [
        "4.png", "1.png", "5.png",
    ]  # fmt: skip


def test_without_mistakes_the_result_is_empty():
    assert confident_mistakes(DATA, PREDICTIONS._replace(classes=DATA.labels), NAMES) == ()


def test_an_image_without_an_answer_is_a_mistake_of_no_class():
    predictions = Predictions(torch.tensor([0, -1, 1, 1, -1, -1]), torch.tensor([0.9, 0.0, 0.5, 0.7, 0.0, 0.0]))
    assert confusion_counts(DATA, predictions, 4).tolist() == [[1, 0, 0, 0], [0, 2, 0, 0], [0] * 4, [0] * 4]
    bolt, nut, _, cat = metrics_by_class(DATA, predictions, NAMES)
    assert (bolt.precision, bolt.recall, nut.recall) == (1, 1 / 2, 2 / 3)
    assert cat.precision is None
    assert {mistake.answer for mistake in confident_mistakes(DATA, predictions, NAMES)} == {"no answer"}
