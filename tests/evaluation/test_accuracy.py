import pytest
import torch
from torch import nn

from tigranet.data import ROTATED, Isometry, LabelledImages
from tigranet.evaluation import Accuracy, accuracy, moved_accuracy, predict
from tigranet.evaluation.accuracy import CPU_BATCH_SIZE


class BrighterHalf(nn.Module):
    """Class 0 if the left half is brighter, class 1 otherwise."""

    def forward(self, images):
        return torch.stack([images[..., : images.shape[-1] // 2].sum((1, 2, 3)), images.sum((1, 2, 3)) / 2], 1)


def left_bright(count=40, size=8):
    images = torch.zeros(count, 1, size, size)
    images[:, :, 2:6, 1:3] = 1
    return LabelledImages(images, torch.zeros(count, dtype=torch.int64))


def test_accuracy_is_in_per_cent():
    data = left_bright()
    assert accuracy(BrighterHalf(), data) == 100
    assert accuracy(BrighterHalf(), data._replace(labels=torch.arange(40) % 2)) == 50


class NanForBright(nn.Module):
    """NaN for images with a mean above one half, otherwise class 0."""

    def forward(self, images):
        means = images.mean((1, 2, 3))
        logits = torch.stack([torch.ones_like(means), torch.zeros_like(means)], 1)
        return logits.masked_fill(means[:, None] > 0.5, float("nan"))


def test_images_without_a_finite_answer_count_as_wrong():
    images = torch.cat([torch.zeros(6, 1, 4, 4), torch.ones(4, 1, 4, 4)])
    data = LabelledImages(images, torch.zeros(10, dtype=torch.int64))
    assert predict(NanForBright(), images, batch_size=3).tolist() == [0] * 6 + [-1] * 4
    assert accuracy(NanForBright(), data) == 60
    assert moved_accuracy(NanForBright(), data, Isometry(max_shift=1, padding="reflection")).mean == 60


def test_predictions_do_not_depend_on_the_batch_size():
    images = torch.rand(23, 1, 8, 8)
    assert torch.equal(predict(BrighterHalf(), images, batch_size=5), predict(BrighterHalf(), images, batch_size=23))


def test_prediction_is_in_evaluation_mode_and_restores_the_mode():
    module = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64)).train()
    before = module[1].running_mean.clone()
    predict(module, torch.rand(5, 1, 8, 8))
    assert torch.equal(module[1].running_mean, before)
    assert module.training


def test_images_can_be_transformed_batch_by_batch():
    data = left_bright()
    assert accuracy(BrighterHalf(), data, lambda batch: batch.flip(-1)) == 0
    flipped = predict(BrighterHalf(), data.images, batch_size=7, transform=lambda batch: batch.flip(-1))
    assert flipped.tolist() == [1] * 40


def test_a_network_that_depends_on_orientation_is_right_half_of_the_time_on_rotated_images():
    result = moved_accuracy(BrighterHalf(), left_bright(400), ROTATED)
    assert result.mean == pytest.approx(50, abs=5)
    assert result.std > 0


def test_a_small_set_is_moved_ten_times_and_a_large_one_once():
    assert moved_accuracy(BrighterHalf(), left_bright(40), ROTATED).draws == 10
    assert moved_accuracy(BrighterHalf(), left_bright(400), ROTATED).draws == 3
    assert moved_accuracy(BrighterHalf(), left_bright(1000), ROTATED).draws == 1
    assert moved_accuracy(BrighterHalf(), left_bright(40), Isometry()).draws == 1


def test_the_seed_determines_the_movements():
    data = left_bright(500)
    generator = torch.Generator().manual_seed(7)
    expected = [accuracy(BrighterHalf(), data._replace(images=ROTATED(data.images, generator))) for _ in range(2)]
    result = moved_accuracy(BrighterHalf(), data, ROTATED, seed=7)
    assert result.mean == pytest.approx(sum(expected) / 2)
    assert result == moved_accuracy(BrighterHalf(), data, ROTATED, seed=7)
    assert result != moved_accuracy(BrighterHalf(), data, ROTATED, seed=8)


class Recorder(BrighterHalf):
    """Keeps a copy of each batch."""

    def __init__(self):
        super().__init__()
        self.batches = []

    def forward(self, images):
        self.batches.append(images.clone())
        return super().forward(images)


MOVEMENTS = {
    "rotated": Isometry(rotated=True),
    "rotated with reflection": Isometry(rotated=True, padding="reflection"),
    "shifted": Isometry(max_shift=3),
    "both": Isometry(rotated=True, max_shift=2, padding="reflection"),
    "shifted within the frame": Isometry(max_shift=5, keep_inside=True),
    "both within the frame": Isometry(rotated=True, max_shift=5, keep_inside=True),
}


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
@pytest.mark.parametrize("movement", MOVEMENTS)
def test_moving_batch_by_batch_gives_the_images_of_moving_all_at_once_bit_for_bit(movement, interpolation):
    """The last batch has a single image."""
    count, moved = 2 * CPU_BATCH_SIZE + 1, MOVEMENTS[movement]
    images = torch.zeros(count, 2, 10, 12)
    images[:, :, 3:8, 2:9] = torch.rand(count, 2, 5, 7)
    data, module = LabelledImages(images, torch.arange(count) % 2), Recorder()
    result = moved_accuracy(module, data, moved, seed=3, interpolation=interpolation)
    generator = torch.Generator().manual_seed(3)
    expected = [moved(images, generator, interpolation) for _ in range(2)]
    assert [len(batch) for batch in module.batches] == [CPU_BATCH_SIZE, CPU_BATCH_SIZE, 1] * 2
    assert torch.equal(torch.cat(module.batches), torch.cat(expected))
    accuracies = [accuracy(BrighterHalf(), data._replace(images=each)) for each in expected]
    assert result.mean == sum(accuracies) / 2
    assert result.draws == 2


def test_no_more_than_a_batch_is_moved_at_a_time(monkeypatch):
    sizes = []
    apply = Isometry.apply
    monkeypatch.setattr(
        Isometry, "apply", lambda self, images, *more: (sizes.append(len(images)), apply(self, images, *more))[1]
    )
    moved_accuracy(BrighterHalf(), left_bright(1000), ROTATED)
    assert sizes == [256, 256, 256, 232]


def test_shifts_are_measured_too():
    assert moved_accuracy(BrighterHalf(), left_bright(), Isometry(max_shift=1)).mean == 100
    assert moved_accuracy(BrighterHalf(), left_bright(), Isometry(max_shift=5)).mean < 100


def test_a_trained_network_is_far_above_chance_at_every_angle(trained, mnist_012):
    assert accuracy(trained, mnist_012.test) > 60
    assert moved_accuracy(trained, mnist_012.test, ROTATED).mean > 60


def test_it_prints_as_in_the_paper():
    assert str(Accuracy(94, 0.42, 10)) == "94.0 ± 0.4"
    assert str(Accuracy(83.8, 0, 1)) == "83.8"


@pytest.mark.parametrize("measure", [accuracy, lambda *arguments: moved_accuracy(*arguments, ROTATED)])
def test_no_images_have_no_accuracy(measure):
    """The mean of nothing is not a number."""
    with pytest.raises(ValueError, match=r"at least 1 image .*got 0"):
        measure(BrighterHalf(), left_bright(0))
