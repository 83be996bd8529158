import math

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, log_loss
from torch import nn

from tigranet.data import LabelledImages
from tigranet.evaluation.classification_scores import classification_scores

NAMES = ("a", "b", "c")


class Logits(nn.Module):
    """Each image holds its own logits."""

    def forward(self, images):
        return images[:, 0, 0, :]


def data_of(logits, labels):
    return LabelledImages(torch.as_tensor(logits, dtype=torch.float32)[:, None, None, :], torch.tensor(labels))


def test_the_scores_are_those_of_scikit_learn():
    generator = np.random.default_rng(0)
    logits, labels = generator.normal(size=(200, 3)), generator.choice(3, size=200, p=[0.8, 0.15, 0.05])
    scores = classification_scores(Logits(), data_of(logits, labels.tolist()), NAMES, batch_size=7)
    logits = logits.astype(np.float32).astype(np.float64)
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert scores.accuracy == pytest.approx(100 * np.mean(logits.argmax(1) == labels))
    assert scores.balanced_accuracy == pytest.approx(100 * balanced_accuracy_score(labels, logits.argmax(1)))
    assert scores.log_loss == pytest.approx(log_loss(labels, probabilities))


def test_every_class_counts_the_same_and_classes_without_images_do_not_count():
    always_first = [[1.0, 0.0, 0.0]] * 10
    scores = classification_scores(Logits(), data_of(always_first, [0] * 9 + [1]), NAMES)
    assert (scores.accuracy, scores.balanced_accuracy) == (90, 50)


def test_an_image_without_a_finite_answer_is_wrong_with_equal_probabilities():
    scores = classification_scores(Logits(), data_of([[math.nan, 0.0, 0.0], [math.inf, 0.0, 0.0]], [1, 0]), NAMES)
    assert (scores.accuracy, scores.balanced_accuracy) == (0, 0)
    assert scores.log_loss == pytest.approx(math.log(3))


def test_at_least_one_image_is_needed():
    with pytest.raises(ValueError, match="at least 1 image"):
        classification_scores(Logits(), data_of(torch.zeros(0, 3), []), NAMES)
