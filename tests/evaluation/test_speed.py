import pytest
import torch

from tigranet import TIGraNet
from tigranet.evaluation.speed import Speed, measure_speed


def test_three_pieces_of_work_are_timed_and_the_network_is_left_alone():
    net = TIGraNet("SC[2,2]-DP[20]-S[3]", 2)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    steps = []
    found = measure_speed(net, 9, batch=4, rounds=1, step=lambda: steps.append(1))
    assert [row.work for row in found] == ["one image", "4 images", "training step of 4"]
    assert all(row.fused > 0 and row.plain > 0 for row in found)
    assert len(steps) == 3
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


def test_the_ratio_is_of_plain_to_fused():
    assert Speed("", fused=2.0, plain=5.0).times == pytest.approx(2.5)


def test_each_row_says_how_many_images_it_is_of():
    found = measure_speed(TIGraNet("SC[1,1]-S[1]", 2), 5, batch=3, rounds=1)
    assert [row.images for row in found] == [1, 3, 3]
