import numpy as np
import pytest
import torch

from tigranet.data import LabelledImages
from tigranet.evaluation.class_report import confident_mistakes, confusion, figures_by_class
from tigranet.evaluation.predictions import Predictions

NAMES = ("bolt", "nut", "washer", "cat")
DATA = LabelledImages(torch.rand(6, 1, 2, 2), torch.tensor([0, 0, 1, 1, 1, 2]))
SEEN = Predictions(torch.tensor([0, 1, 1, 1, 0, 1]), torch.tensor([0.9, 0.6, 0.5, 0.7, 0.8, 0.6]))


def test_the_confusion_matrix_counts_truths_in_rows_and_answers_in_columns():
    wanted = np.zeros((4, 4), dtype=int)
    for truth, answer in zip(DATA.labels.tolist(), SEEN.classes.tolist(), strict=True):
        wanted[truth, answer] += 1
    assert np.array_equal(confusion(DATA, SEEN, 4), wanted)


def test_the_figures_are_those_of_hand_arithmetic():
    bolt, nut, washer, cat = figures_by_class(DATA, SEEN, NAMES)
    assert (bolt.name, bolt.support, bolt.precision, bolt.recall) == ("bolt", 2, 1 / 2, 1 / 2)
    assert (nut.support, nut.precision, nut.recall) == (3, 2 / 4, 2 / 3)
    assert nut.f1 == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))
    assert (washer.support, washer.precision, washer.recall, washer.f1) == (1, None, 0, 0)
    assert (cat.support, cat.precision, cat.recall, cat.f1) == (0, None, None, None)


def test_mistakes_come_by_confidence_then_in_order():
    mistakes = confident_mistakes(DATA, SEEN, NAMES)
    assert [mistake.image for mistake in mistakes] == [4, 1, 5]
    assert (mistakes[0].answer, mistakes[0].truth) == ("bolt", "nut")
    assert mistakes[0].probability == pytest.approx(0.8)
    assert confident_mistakes(DATA, SEEN, NAMES, at_most=1) == mistakes[:1]


def test_there_may_be_none():
    assert confident_mistakes(DATA, SEEN._replace(classes=DATA.labels), NAMES) == ()
