from dataclasses import replace

import pytest
import torch

from tigranet import TIGraNet
from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.accuracy import moved_accuracy
from tigranet.evaluation.moved_logits import rotated_logits
from tigranet.evaluation.robustness import QUARTER


def test_the_logits_are_those_whose_accuracy_is_measured():
    part = LabelledImages(torch.rand(300, 1, 8, 8), torch.arange(300) % 3)
    data = DataSet("noise", ("a", "b", "c"), part, part, part)
    net = TIGraNet("SC[2,2]-S[2]", 3).eval()
    measured = rotated_logits(net, data, seed=5)
    assert list(measured) == ["upright", QUARTER, "rotated"]
    torch.testing.assert_close(measured["upright"].logits, net(part.images).detach())
    torch.testing.assert_close(measured["upright"].logits, measured[QUARTER].logits, atol=1e-4, rtol=1e-4)
    logits, labels = measured["rotated"]
    assert len(logits) == len(labels) == 4 * 300  # small data sets are rotated several times
    correct = 100 * float((logits.argmax(1) == labels).double().mean())
    assert correct == pytest.approx(moved_accuracy(net, data.test, data.test_motion, seed=5).mean)
    doubled = rotated_logits(net, data, 5, lambda images: 2 * net(images))
    torch.testing.assert_close(doubled["rotated"].logits, 2 * logits)
    with pytest.raises(ValueError, match="no test images"):
        rotated_logits(net, replace(data, test=part.take([])))
