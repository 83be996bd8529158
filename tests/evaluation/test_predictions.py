import math

import pytest
import torch
from torch import nn

from tigranet.data import LabelledImages
from tigranet.evaluation.predictions import NO_ANSWER, highest_classes, names_of_answers, predict_classes


class Halves(nn.Module):
    """Brightness of the left and of the right half, with a third class of very low probability."""

    def forward(self, images):
        left, right = images.mean((1, 2)).chunk(2, dim=-1)
        return torch.stack([left.sum(-1), right.sum(-1), torch.full_like(left.sum(-1), -9.0)], 1)


def test_the_confidence_is_the_probability_of_the_predicted_class():
    images = torch.rand(7, 1, 4, 6)
    probabilities = Halves()(images).softmax(1)
    predictions = predict_classes(Halves(), images, batch_size=3)
    assert torch.equal(predictions.classes, probabilities.argmax(1))
    torch.testing.assert_close(predictions.confidence, probabilities.amax(1))
    assert (predictions.confidence > 1 / 3).all()


def test_images_are_transformed_batch_by_batch():
    sizes = []

    def flip(images):
        sizes.append(len(images))
        return images.flip(-1)

    images = torch.rand(7, 1, 4, 6)
    predictions = predict_classes(Halves(), images, flip, batch_size=3)
    assert sizes == [3, 3, 1]
    assert torch.equal(predictions.classes, 1 - predict_classes(Halves(), images).classes)


def test_correct_predictions_are_counted():
    images = torch.zeros(4, 1, 2, 2)
    images[:3, :, :, 0] = 1
    data = LabelledImages(images, torch.tensor([0, 0, 1, 1]))
    assert predict_classes(Halves(), images).count_correct(data) == 2


class Fixed(nn.Module):
    """Logits that do not depend on the images."""

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self, images):
        return self.logits[: len(images)]


NAN, INF = float("nan"), float("inf")


def test_nan_and_infinity_are_no_answers_and_never_correct():
    """The highest number of a row with NaN is at the NaN, which would be class 0 or 1 here."""
    module = Fixed([[NAN, 0.0], [0.0, NAN], [NAN, NAN], [INF, 0.0], [0.0, -INF], [2.0, 1.0]])
    images, labels = torch.zeros(6, 1, 2, 2), torch.tensor([0, 1, 0, 0, 0, 0])
    predictions = predict_classes(module, images)
    assert predictions.classes.tolist() == [NO_ANSWER] * 5 + [0]
    assert predictions.confidence.tolist() == pytest.approx([0.0] * 5 + [1 / (1 + math.exp(-1))])
    assert predictions.count_correct(LabelledImages(images, labels)) == 1
    assert torch.equal(highest_classes(module.logits), predictions.classes)


def test_classes_are_those_of_argmax_if_all_numbers_are_finite():
    logits = torch.randn(50, 7)
    assert torch.equal(highest_classes(logits), logits.argmax(1))
    assert highest_classes(logits[:0]).shape == (0,)


def test_no_answer_has_a_name_of_its_own():
    names = names_of_answers(["a", "b"])
    assert [names[answer] for answer in (0, 1, NO_ANSWER)] == ["a", "b", "no answer"]


def test_prediction_is_in_evaluation_mode_and_restores_the_mode():
    module = nn.Sequential(nn.Flatten(), nn.Dropout(0.9), nn.Linear(16, 2)).train()
    images = torch.rand(5, 1, 4, 4)
    assert torch.equal(predict_classes(module, images).confidence, predict_classes(module, images).confidence)
    assert module.training


def test_the_mode_is_restored_when_the_module_fails():
    module = nn.Linear(3, 2).train()
    with pytest.raises(RuntimeError):
        predict_classes(module, torch.rand(5, 1, 4, 4))
    assert module.training
