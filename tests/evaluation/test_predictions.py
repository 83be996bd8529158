import pytest
import torch
from torch import nn

from tigranet.data import LabelledImages
from tigranet.evaluation.predictions import predict_classes


class Halves(nn.Module):
    """How bright the left and the right half are, with a third class that never wins."""

    def forward(self, images):
        left, right = images.mean((1, 2)).chunk(2, dim=-1)
        return torch.stack([left.sum(-1), right.sum(-1), torch.full_like(left.sum(-1), -9.0)], 1)


def test_the_confidence_is_the_probability_of_the_answer():
    images = torch.rand(7, 1, 4, 6)
    probabilities = Halves()(images).softmax(1)
    seen = predict_classes(Halves(), images, batch_size=3)
    assert torch.equal(seen.classes, probabilities.argmax(1))
    torch.testing.assert_close(seen.confidence, probabilities.amax(1))
    assert (seen.confidence > 1 / 3).all()


def test_images_are_transformed_a_batch_at_a_time():
    sizes = []

    def flipped(images):
        sizes.append(len(images))
        return images.flip(-1)

    images = torch.rand(7, 1, 4, 6)
    seen = predict_classes(Halves(), images, flipped, batch_size=3)
    assert sizes == [3, 3, 1]
    assert torch.equal(seen.classes, 1 - predict_classes(Halves(), images).classes)


def test_right_answers_are_counted():
    images = torch.zeros(4, 1, 2, 2)
    images[:3, :, :, 0] = 1
    assert predict_classes(Halves(), images).right(LabelledImages(images, torch.tensor([0, 0, 1, 1]))) == 2


def test_it_is_in_evaluation_mode_and_leaves_the_mode_as_it_was():
    module = nn.Sequential(nn.Flatten(), nn.Dropout(0.9), nn.Linear(16, 2)).train()
    images = torch.rand(5, 1, 4, 4)
    assert torch.equal(predict_classes(module, images).confidence, predict_classes(module, images).confidence)
    assert module.training


def test_a_module_that_fails_is_left_in_its_mode_too():
    module = nn.Linear(3, 2).train()
    with pytest.raises(RuntimeError):
        predict_classes(module, torch.rand(5, 1, 4, 4))
    assert module.training
