from dataclasses import replace

import torch

from tigranet import TIGraNet
from tigranet.baselines import ConvNet
from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.report_subject import QUARTERS, count_steps, measure_subject

SIZE = 10


def noise(count):
    return LabelledImages(torch.rand(count, 1, SIZE, SIZE), torch.arange(count) % 2)


def measure(module):
    """Return the measurements of a network on noise, and the number of steps that were announced."""
    steps: list[int] = []
    data = DataSet("noise", ("a", "b"), noise(2), noise(2), noise(6))
    test = data.test
    subject = measure_subject("network", module, data, test, test, 0, lambda count=1: steps.append(count))
    return subject, sum(steps)


def test_quarter_turns_change_no_prediction_of_an_invariant_network():
    subject, steps = measure(TIGraNet("SC[2,2]-S[2]", 2).eval())
    assert subject.exact()
    assert [(turn.degrees, turn.right) for turn in subject.quarter_turns] == [
        (angle, subject.right) for angle in QUARTERS
    ]
    assert not replace(subject, quarter_turns=(replace(subject.quarter_turns[0], changed=1),)).exact()
    assert steps == count_steps(TIGraNet("SC[2,2]-S[2]", 2), SIZE)


def test_all_steps_of_a_cnn_are_counted():
    cnn = ConvNet("C[2]-P[2]", 2, SIZE).eval()
    subject, steps = measure(cnn)
    assert steps == count_steps(cnn, SIZE)
    assert set(subject.change) == {"logits"}
    assert subject.interval.low <= 100 * subject.right / 6 <= subject.interval.high
