"""Trainings with images or answers that are not finite."""

import csv
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.finite_images import (
    ValidationImagesWarning,
    check_training_images,
    finite_validation_images,
    list_positions,
)

CPU = Hardware("cpu")


def data_with(value, positions, count=40):
    """Return images with one pixel of some value in the images at some positions."""
    images = torch.rand(count, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    images[positions, 1, 2, 4] = value
    return LabelledImages(images, torch.arange(count) % 2)


class Linear(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(72, 2))


def train(validation, module=None, folder=None, **fields):
    torch.manual_seed(0)
    recipe = Recipe(**({"epochs": 4, "jitter": 0.0} | fields))
    return fit(module or Linear(), data_with(0.5, []), validation, recipe, folder=folder, hardware=CPU)


def history(folder):
    return list(csv.DictReader((folder / "history.csv").read_text().splitlines()))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_training_images_that_are_not_finite_are_refused_with_their_positions(value):
    bad = data_with(value, [5, 17])
    message = rf"2 of 40 images.*position 5, 17 .*image 5: {value} in channel 1, row 2, column 4"
    with pytest.raises(ValueError, match=message):
        fit(Linear(), bad, None, Recipe(epochs=1))
    with pytest.raises(ValueError, match=message):
        check_training_images(bad)


def test_many_positions_are_counted_instead_of_listed():
    with pytest.raises(
        ValueError, match=r"2000 of 3000 images, at position 1000, 1001, 1002, 1003, 1004 and 1995 more"
    ):
        check_training_images(data_with(torch.nan, slice(1000, None), 3000))
    assert list_positions([]) == ""
    assert list_positions([1, 2, 3, 4, 5]) == "1, 2, 3, 4, 5"


@pytest.mark.parametrize("fields", [{}, {"keep": "best"}, {"patience": 2}])
def test_validation_images_that_are_not_finite_are_left_out(fields, tmp_path):
    """The training is the same as without these images."""
    with pytest.warns(ValidationImagesWarning, match=r"2 of 40 validation images.*position 0, 39$") as record:
        with_bad = train(data_with(torch.nan, [0, 39]), folder=tmp_path / "bad", **fields)
    assert len(record) == 1
    without = train(data_with(torch.nan, []).take(list(range(1, 39))), folder=tmp_path / "good", **fields)
    assert torch.equal(with_bad[1].weight, without[1].weight)
    columns = ("loss", "validation_loss", "validation_accuracy")
    rows = [[[row[column] for column in columns] for row in history(tmp_path / name)] for name in ("bad", "good")]
    assert rows[0] == rows[1]


def test_a_training_with_a_bad_validation_image_can_be_resumed(tmp_path):
    train_images, bad, recipe = data_with(0.5, []), data_with(torch.nan, [3]), Recipe(epochs=2)
    for resume in (False, True):
        with pytest.warns(ValidationImagesWarning):
            fit(Linear(), train_images, bad, recipe, folder=tmp_path, resume=resume, hardware=CPU)


def test_finite_validation_images_are_not_copied():
    data = data_with(0.5, [])
    assert finite_validation_images(data) is data


def test_weights_of_validation_images_are_selected_too():
    data = data_with(torch.inf, [1])._replace(weights=torch.arange(40.0))
    with pytest.warns(ValidationImagesWarning):
        assert finite_validation_images(data).weights.tolist() == [0.0, *range(2, 40)]


def test_validation_images_that_are_all_bad_are_an_error():
    with pytest.raises(ValueError, match="all 40 validation images"):
        train(data_with(torch.nan, slice(None)))


class NanForBrightImages(Linear):
    """Gives no answer for images with a pixel of 2, which are finite."""

    answer = torch.nan

    def forward(self, images):
        is_bright = images.flatten(1).amax(1, keepdim=True) == 2
        return super().forward(images).masked_fill(is_bright, self.answer)


class LargeForBrightImages(NanForBrightImages):
    def forward(self, images):
        logits = super().forward(images)
        return torch.where(logits.isnan(), torch.tensor([1e30, -1e30]), logits)


@pytest.mark.parametrize("fields", [{}, {"keep": "best"}, {"patience": 3}])
@pytest.mark.parametrize("network", [NanForBrightImages, LargeForBrightImages])
def test_an_image_without_an_answer_counts_as_a_wrong_guess_and_is_named_once(network, fields, tmp_path):
    """Without the limit, one such image would make every validation loss infinite."""
    validation = data_with(2.0, [7, 8, 23])
    with pytest.warns(ValidationImagesWarning, match=r"no finite loss.* epoch 1, at position 7") as record:
        module = train(validation, network(), tmp_path, epochs=6, learning_rate=1e-3, schedule="cosine", **fields)
    assert len(record) == 1
    rows = history(tmp_path)
    assert len(rows) == 6
    kept = min(rows, key=lambda row: float(row["validation_loss"])) if fields else rows[-1]
    with torch.inference_mode():
        logits = module(validation.images)
    losses = F.cross_entropy(logits, validation.labels, reduction="none")
    losses[~(losses < 1e6)] = torch.log(torch.tensor(2.0))
    correct = logits.argmax(1) == validation.labels
    correct[[7, 23]] = False
    if network is NanForBrightImages:
        correct[8] = False
    assert float(kept["validation_loss"]) == pytest.approx(losses.mean().item(), rel=1e-5)
    assert float(kept["validation_accuracy"]) == pytest.approx(correct.float().mean().item())


def test_no_answer_at_all_is_an_infinite_loss_and_no_accuracy(tmp_path):
    with pytest.warns(ValidationImagesWarning) as record:
        train(data_with(2.0, slice(None)), NanForBrightImages(), tmp_path, epochs=2)
    assert len(record) == 1
    assert [(row["validation_loss"], row["validation_accuracy"]) for row in history(tmp_path)] == [("inf", "0.0")] * 2


def test_validation_without_an_answer_in_some_epochs_does_not_stop_the_training(tmp_path):
    """Early stopping waits for its patience, and the best weights are those of an epoch with an answer."""

    class SometimesNan(Linear):
        validations = 0

        def forward(self, images):
            self.validations += not self.training
            return super().forward(images) + (torch.nan if self.validations == 2 and not self.training else 0)

    with pytest.warns(ValidationImagesWarning, match="epoch 2"):
        module = train(data_with(0.5, []), SometimesNan(), tmp_path, epochs=5, patience=3)
    assert [row["validation_loss"] == "inf" for row in history(tmp_path)] == [False, True, False, False, False]
    assert module[1].weight.isfinite().all()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_blank_validation_images_are_ordinary_images(value, tmp_path):
    """Their variance is zero."""
    data = LabelledImages(torch.rand(20, 1, 8, 8), torch.arange(20) % 2)
    blank = LabelledImages(torch.full((3, 1, 8, 8), value), torch.tensor([0, 1, 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ValidationImagesWarning)
        network = TIGraNet("SC[3,3]-DP[40]-S[6]-FC[20]", num_classes=2)
        fit(network, data, blank, Recipe(epochs=2, keep="best"), folder=tmp_path, hardware=CPU)
    assert all(float(row["validation_loss"]) < 1e6 for row in history(tmp_path))
