import torch

from tigranet import TIGraNet
from tigranet.baselines import ConvNet
from tigranet.data import LabelledImages
from tigranet.evaluation.answers_by_angle import TURN_ANGLES, answers_by_angle
from tigranet.evaluation.curves import rotate_all
from tigranet.evaluation.predictions import predict_classes


def test_the_answers_are_those_for_the_rotated_images_and_quarter_turns_change_none():
    torch.manual_seed(0)
    networks = {"ours": TIGraNet("SC[2,2]-DP[40]-S[2]", 3).eval(), "CNN": ConvNet("C[2]-P[2]", 3, 12).eval()}
    data = LabelledImages(torch.rand(5, 1, 12, 12), torch.tensor([0, 1, 2, 0, 1]))
    turned = answers_by_angle(networks, data, [4, 1], "border")
    assert [(each.image, each.truth) for each in turned] == [(4, 1), (1, 1)]
    for name, network in networks.items():
        rotated = predict_classes(network, rotate_all(data.images[[4, 1]], 30.0, "border"))
        at = TURN_ANGLES.index(30)
        assert [each.classes[name][at] for each in turned] == rotated.classes.tolist()
        assert [each.probabilities[name][at] for each in turned] == rotated.confidence.tolist()
    for each in turned:
        assert len({each.classes["ours"][TURN_ANGLES.index(angle)] for angle in (0, 90, 180, 270)}) == 1


def test_no_images_have_no_answers():
    data = LabelledImages(torch.rand(1, 1, 4, 4), torch.tensor([0]))
    assert answers_by_angle({}, data, []) == ()
