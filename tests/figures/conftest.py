"""A small report that several modules draw or write."""

import pytest
import torch

from tigranet import TIGraNet
from tigranet.baselines import ConvNet
from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.report import PLAIN_CNN, ROTATED_CNN, report_on

HOSTILE_NAMES = ("<script>alert(1)</script>", "a & \"b\" 'c'", "$x^{$", "caf\udce9")


def measured_report(class_names, baseline=True, test_classes=None):
    torch.manual_seed(0)
    classes = len(class_names)
    parts = [
        LabelledImages(torch.rand(count, 1, 12, 12), torch.arange(count) % classes) for count in (classes, classes)
    ]
    test = LabelledImages(torch.rand(20, 1, 12, 12), torch.arange(20) % (test_classes or classes))
    data = DataSet("<noise>", class_names, *parts, test, is_upright=True)
    net = TIGraNet("SC[2,2]-DP[40]-S[2]", classes).eval()
    command = {"command": "tigranet report 'a <model>' noise", "model": "a <model>", "boundary": "free"}
    cnns = {name: ConvNet("C[2]-P[2]", classes, 12) for name in (PLAIN_CNN, ROTATED_CNN)}
    return report_on(net, data, cnns if baseline else {}, provenance=command), test


@pytest.fixture(scope="session")
def measured():
    """A report, and the test images that it shows."""
    return measured_report(HOSTILE_NAMES)
