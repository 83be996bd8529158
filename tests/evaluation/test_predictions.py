import pytest
import torch
from torch import nn

from tigranet.data import LabelledImages
from tigranet.evaluation.predictions import predict_classes


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
