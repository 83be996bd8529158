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
    against_angle,
    against_shift,
    change_by_angle,
    invariance,
    relative_change,
    shift_lengths,
    shifted,
    turned,
)
from tigranet.evaluation.predictions import logits_of
from tigranet.testing import SQUARE, invariance_error


class TopLeft(nn.Module):
    """Class 0 while the top left quarter is the brightest."""

    def forward(self, images):
        half = images.shape[-1] // 2
        inside = images[..., :half, :half].sum((1, 2, 3))
        return torch.stack([inside, images.sum((1, 2, 3)) - inside], 1)


def cornered(count=6, size=16):
    images = torch.zeros(count, 1, size, size)
    images[:, :, 2:4, 2:4] = torch.linspace(0.5, 1, count)[:, None, None, None]
    return LabelledImages(images, torch.zeros(count, dtype=torch.int64))


@pytest.mark.parametrize("outside", ["zeros", "reflection"])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270, 360, -90, 450])
def test_a_quarter_turn_moves_pixels_and_changes_none(degrees, outside):
    images = torch.rand(3, 2, 9, 9)
    assert torch.equal(turned(images, float(degrees), outside), torch.rot90(images, degrees // 90, (2, 3)))


def test_other_angles_are_those_of_rotate():
    images = torch.rand(3, 2, 9, 9)
    assert torch.equal(turned(images, 30.0, "reflection"), rotate(images, torch.full((3,), 30.0), padding="reflection"))
    close = torch.full((3,), 90.0)
    torch.testing.assert_close(turned(images, 90.0), rotate(images, close), atol=1e-4, rtol=0)  # the same way round


def test_the_curve_of_a_network_that_sees_corners():
    seen = against_angle(TopLeft(), cornered(), angles=[0.0, 90.0, 180.0, 270.0, 360.0])
    assert seen.images == 6
    assert seen.at == (0, 90, 180, 270, 360)
    assert seen.accuracy == (100, 0, 0, 0, 100)
    assert all(value > 50 for value in seen.confidence)


def test_each_point_is_the_accuracy_on_images_turned_so():
    torch.manual_seed(1)
    data = LabelledImages(torch.rand(40, 1, 16, 16), torch.arange(40) % 2)
    seen = against_angle(TopLeft(), data, "reflection")
    assert seen.at == ANGLES == tuple(range(0, 361, 15))
    for angle, came in zip(seen.at, seen.accuracy, strict=True):
        assert came == pytest.approx(
            accuracy(TopLeft(), data._replace(images=turned(data.images, angle, "reflection")))
        )
    assert seen == against_angle(TopLeft(), data, "reflection")


def test_a_full_turn_is_not_measured_twice():
    calls = []

    class Counting(TopLeft):
        def forward(self, images):
            calls.append(len(images))
            return super().forward(images)

    against_angle(Counting(), cornered(), angles=[0.0, 360.0, 90.0, 450.0])
    assert len(calls) == 2


def test_shifts_go_to_a_quarter_of_the_image_in_whole_pixels():
    for size in (2, 5, 28, 50, 64, 256):
        lengths = shift_lengths(size)
        assert lengths[0] == 0
        assert all(length == int(length) for length in lengths)
        assert max(lengths) <= size / 4
        assert len(lengths) <= 16


def test_a_shift_is_the_mean_over_four_directions():
    data = cornered(size=16)
    seen = against_shift(TopLeft(), data, lengths=[0.0, 6.0])
    assert seen.accuracy[0] == 100
    wanted = [accuracy(TopLeft(), data._replace(images=shifted(data.images, 6 * d, 6 * r))) for d, r in DIRECTIONS]
    assert seen.accuracy[1] == pytest.approx(sum(wanted) / 4)
    assert 0 < seen.accuracy[1] < 100


def test_a_step_is_taken_at_every_point():
    steps = []
    against_angle(TopLeft(), cornered(), angles=[0.0, 10.0], step=lambda: steps.append("angle"))
    against_shift(TopLeft(), cornered(), step=lambda: steps.append("shift"))
    change_by_angle(TopLeft(), cornered().images, angles=[0.0], step=lambda: steps.append("change"))
    assert steps == ["angle"] * 2 + ["shift"] * 5 + ["change"]


def test_tigranet_is_right_as_often_at_quarter_turns_to_the_image(trained, mnist_012):
    test = mnist_012.test.take(list(range(40)))
    seen = against_angle(trained, test, angles=[0.0, 45.0, 90.0, 180.0, 270.0])
    upright, _, *quarters = seen.accuracy
    assert quarters == [upright] * 3
    assert seen.confidence[2:] == pytest.approx([seen.confidence[0]] * 3, abs=1e-3)


def test_on_the_torus_a_shift_that_loses_nothing_changes_nothing(trained_on_torus, mnist_012):
    padded = LabelledImages(F.pad(mnist_012.test.images[:30], (3, 3, 3, 3)), mnist_012.test.labels[:30])
    seen = against_shift(trained_on_torus, padded, lengths=[0.0, 2.0])
    assert seen.accuracy[0] == seen.accuracy[1]


def test_the_change_is_the_invariance_error():
    net = TIGraNet("SC[2,2]-DP[20]-S[2]", 2).eval()
    images = torch.rand(3, 1, 12, 12)
    seen = change_by_angle(net.features, images, angles=[0.0, 30.0, 90.0])
    assert seen[0] == 0
    assert seen[1] == pytest.approx(invariance_error(net.features, images, lambda images: turned(images, 30.0)))
    assert seen[2] == pytest.approx(invariance_error(net.features, images, SQUARE["90 degrees"]))
    assert seen[2] < 1e-5 < seen[1]


def test_the_relative_change_is_of_each_image_and_does_not_see_the_scale_of_logits():
    before = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    came = torch.tensor([[3.0, 9.0], [0.0, 1.0]])
    assert relative_change(came, before) == pytest.approx(0.5)  # the mean of 1 and 0
    assert relative_change(100 * came, 100 * before) == pytest.approx(0.5)


@pytest.mark.parametrize("architecture", ["SC[3,3]-DP[40]-S[3]-FC[8]", "MC[4,3]-OP[2]-MC[4,3]-S[3]-FC[8]"])
def test_quarter_turns_change_the_logits_by_rounding_and_other_angles_by_more(architecture):
    net, images = TIGraNet(architecture, 3), torch.rand(5, 1, 14, 14)
    net(images)  # its moments
    seen = invariance(net, images, angles=[0.0, 30.0, 90.0, 180.0, 270.0, 360.0])
    assert net.training
    assert seen.accuracy is None
    assert seen.change[0] == seen.change[-1] == 0
    assert seen.mean_change(quarters=True) < 1e-5 < 1e-3 < seen.mean_change(quarters=False) == seen.change[1]
    upright, moved = (logits_of(net, given) for given in (images, turned(images, 30.0)))
    assert seen.change[1] == pytest.approx(relative_change(moved, upright))


def test_with_labels_the_accuracy_is_that_of_the_curve():
    data = LabelledImages(torch.rand(20, 1, 16, 16), torch.arange(20) % 2)
    seen = invariance(TopLeft(), data.images, data.labels, "reflection")
    wanted = against_angle(TopLeft(), data, "reflection")
    assert seen.at == wanted.at
    assert seen.accuracy == pytest.approx(wanted.accuracy)
    assert seen.images == 20
