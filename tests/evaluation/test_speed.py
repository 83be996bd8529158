import pytest
import torch

from tigranet import TIGraNet
from tigranet.evaluation.speed import Speed, measure_speed


def test_three_tasks_are_timed_and_the_weights_do_not_change():
    net = TIGraNet("SC[2,2]-DP[20]-S[3]", 2)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    steps = []
    results = measure_speed(net, 9, batch=4, rounds=1, step=lambda: steps.append(1))
    assert [result.work for result in results] == ["one image", "4 images", "training step of 4"]
    assert all(result.fused > 0 and result.plain > 0 for result in results)
    assert len(steps) == 3
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


def test_the_speed_up_is_the_ratio_of_plain_to_fused():
    assert Speed("", fused=2.0, plain=5.0).times == pytest.approx(2.5)


def test_each_result_has_its_number_of_images():
    results = measure_speed(TIGraNet("SC[1,1]-S[1]", 2), 5, batch=3, rounds=1)
    assert [result.images for result in results] == [1, 3, 3]
