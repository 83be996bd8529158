import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tigranet import TIGraNet
from tigranet.data import LabelledImages, rotate
from tigranet.evaluation import accuracy
from tigranet.evaluation.curves import (
    ANGLES,
    DIRECTIONS,
    angle_curve,
    invariance,
    invariance_error_by_angle,
    relative_change,
    rotate_all,
    shift_all,
    shift_curve,
    shift_lengths,
)
from tigranet.evaluation.predictions import logits_of
from tigranet.testing import SQUARE, invariance_error


class TopLeft(nn.Module):
    """Class 0 if the top left quarter is brighter than the rest."""

    def forward(self, images):
        half = images.shape[-1] // 2
        inside = images[..., :half, :half].sum((1, 2, 3))
        return torch.stack([inside, images.sum((1, 2, 3)) - inside], 1)


def bright_top_left(count=6, size=16):
    images = torch.zeros(count, 1, size, size)
    images[:, :, 2:4, 2:4] = torch.linspace(0.5, 1, count)[:, None, None, None]
    return LabelledImages(images, torch.zeros(count, dtype=torch.int64))


@pytest.mark.parametrize("padding", ["zeros", "reflection"])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270, 360, -90, 450])
def test_a_quarter_turn_permutes_pixels(degrees, padding):
    images = torch.rand(3, 2, 9, 9)
    assert torch.equal(rotate_all(images, float(degrees), padding), torch.rot90(images, degrees // 90, (2, 3)))


def test_other_angles_are_those_of_rotate():
    images = torch.rand(3, 2, 9, 9)
    expected = rotate(images, torch.full((3,), 30.0), padding="reflection")
    assert torch.equal(rotate_all(images, 30.0, "reflection"), expected)
    interpolated = rotate(images, torch.full((3,), 90.0))
    torch.testing.assert_close(rotate_all(images, 90.0), interpolated, atol=1e-4, rtol=0)  # the same direction


def test_the_curve_of_a_network_that_depends_on_orientation():
    curve = angle_curve(TopLeft(), bright_top_left(), angles=[0.0, 90.0, 180.0, 270.0, 360.0])
    assert curve.images == 6
    assert curve.at == (0, 90, 180, 270, 360)
    assert curve.accuracy == (100, 0, 0, 0, 100)
    assert all(value > 50 for value in curve.confidence)


def test_each_point_is_the_accuracy_on_images_rotated_by_its_angle():
    torch.manual_seed(1)
    data = LabelledImages(torch.rand(40, 1, 16, 16), torch.arange(40) % 2)
    curve = angle_curve(TopLeft(), data, "reflection")
    assert curve.at == ANGLES == tuple(range(0, 361, 15))
    for angle, actual in zip(curve.at, curve.accuracy, strict=True):
        expected = accuracy(TopLeft(), data._replace(images=rotate_all(data.images, angle, "reflection")))
        assert actual == pytest.approx(expected)
    assert curve == angle_curve(TopLeft(), data, "reflection")


def test_angles_that_differ_by_a_full_turn_are_measured_once():
    sizes = []

    class Counting(TopLeft):
        def forward(self, images):
            sizes.append(len(images))
            return super().forward(images)

    angle_curve(Counting(), bright_top_left(), angles=[0.0, 360.0, 90.0, 450.0])
    assert len(sizes) == 2


def test_shifts_go_to_a_quarter_of_the_image_in_whole_pixels():
    for size in (2, 5, 28, 50, 64, 256):
        lengths = shift_lengths(size)
        assert lengths[0] == 0
        assert all(length == int(length) for length in lengths)
        assert max(lengths) <= size / 4
        assert len(lengths) <= 16


def test_a_shift_is_the_mean_over_four_directions():
    data = bright_top_left(size=16)
    curve = shift_curve(TopLeft(), data, lengths=[0.0, 6.0])
    assert curve.accuracy[0] == 100
    expected = [accuracy(TopLeft(), data._replace(images=shift_all(data.images, 6 * d, 6 * r))) for d, r in DIRECTIONS]
    assert curve.accuracy[1] == pytest.approx(sum(expected) / 4)
    assert 0 < curve.accuracy[1] < 100


def test_step_is_called_at_every_point():
    steps = []
    angle_curve(TopLeft(), bright_top_left(), angles=[0.0, 10.0], step=lambda: steps.append("angle"))
    shift_curve(TopLeft(), bright_top_left(), step=lambda: steps.append("shift"))
    invariance_error_by_angle(TopLeft(), bright_top_left().images, angles=[0.0], step=lambda: steps.append("change"))
    assert steps == ["angle"] * 2 + ["shift"] * 5 + ["change"]


def test_tigranet_has_exactly_its_upright_accuracy_at_quarter_turns(trained, mnist_012):
    test = mnist_012.test.take(list(range(40)))
    curve = angle_curve(trained, test, angles=[0.0, 45.0, 90.0, 180.0, 270.0])
    upright, _, *quarters = curve.accuracy
    assert quarters == [upright] * 3
    assert curve.confidence[2:] == pytest.approx([curve.confidence[0]] * 3, abs=1e-3)


def test_on_the_torus_a_shift_that_loses_no_pixels_changes_nothing(trained_on_torus, mnist_012):
    padded = LabelledImages(F.pad(mnist_012.test.images[:30], (3, 3, 3, 3)), mnist_012.test.labels[:30])
    curve = shift_curve(trained_on_torus, padded, lengths=[0.0, 2.0])
    assert curve.accuracy[0] == curve.accuracy[1]


def test_the_error_at_each_angle_is_the_invariance_error():
    net = TIGraNet("SC[2,2]-DP[20]-S[2]", 2).eval()
    images = torch.rand(3, 1, 12, 12)
    errors = invariance_error_by_angle(net.features, images, angles=[0.0, 30.0, 90.0])
    assert errors[0] == 0
    assert errors[1] == pytest.approx(invariance_error(net.features, images, lambda images: rotate_all(images, 30.0)))
    assert errors[2] == pytest.approx(invariance_error(net.features, images, SQUARE["90 degrees"]))
    assert errors[2] < 1e-5 < errors[1]


def test_the_relative_change_is_averaged_over_images_and_does_not_depend_on_the_scale_of_the_logits():
    before = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    after = torch.tensor([[3.0, 9.0], [0.0, 1.0]])
    assert relative_change(after, before) == pytest.approx(0.5)  # the mean of 1 and 0
    assert relative_change(100 * after, 100 * before) == pytest.approx(0.5)
    nan, inf = torch.full((1, after.shape[1]), float("nan")), torch.full((1, after.shape[1]), float("inf"))
    assert relative_change(torch.cat([nan, after]), torch.cat([before[:1], before])) == pytest.approx(0.5)
    assert relative_change(torch.cat([before[:1], after]), torch.cat([inf, before])) == pytest.approx(0.5)


@pytest.mark.parametrize("architecture", ["SC[3,3]-DP[40]-S[3]-FC[8]", "MC[4,3]-OP[2]-MC[4,3]-S[3]-FC[8]"])
def test_quarter_turns_change_the_logits_by_rounding_and_other_angles_by_more(architecture):
    net, images = TIGraNet(architecture, 3), torch.rand(5, 1, 14, 14)
    net(images)  # sets the running moments
    result = invariance(net, images, angles=[0.0, 30.0, 90.0, 180.0, 270.0, 360.0])
    assert net.training
    assert result.accuracy is None
    assert result.change[0] == result.change[-1] == 0
    assert result.mean_change(quarters=True) < 1e-5 < 1e-3 < result.mean_change(quarters=False) == result.change[1]
    upright, rotated = (logits_of(net, batch) for batch in (images, rotate_all(images, 30.0)))
    assert result.change[1] == pytest.approx(relative_change(rotated, upright))


def test_with_labels_the_accuracy_is_that_of_the_curve():
    data = LabelledImages(torch.rand(20, 1, 16, 16), torch.arange(20) % 2)
    result = invariance(TopLeft(), data.images, data.labels, "reflection")
    curve = angle_curve(TopLeft(), data, "reflection")
    assert result.at == curve.at
    assert result.accuracy == pytest.approx(curve.accuracy)
    assert result.images == 20
