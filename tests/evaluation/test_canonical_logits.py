import pytest
import torch

from calibration import calibrate
from tigranet import TIGraNet
from tigranet.evaluation.canonical_logits import canonical_logits, double_head
from tigranet.ops.mode import using


@pytest.mark.parametrize(
    "architecture", ["SC[3,3]-DP[60]-S[4]-FC[8]", "MC[4,3]-OP[3]-MC[5,3]-S[2]-FC[8]", "LC[3,3]-D-MO[8]-S[0]"]
)
def test_quarter_turns_in_one_batch_have_bitwise_the_same_logits(architecture):
    net = calibrate(TIGraNet(architecture, 4), 16)
    images = torch.rand(7, 1, 16, 16)
    turned = torch.cat([torch.rot90(images, turn, (2, 3)) for turn in range(4)])
    with torch.inference_mode(), using("plain"):
        logits = canonical_logits(net)(turned).unflatten(0, (4, 7))
        expected = net(images)
    assert logits.dtype == torch.float64
    assert float((logits - logits[0]).abs().max()) < 1e-12
    torch.testing.assert_close(logits[0].float(), expected, atol=1e-4, rtol=1e-4)


def test_the_head_is_a_copy():
    net = TIGraNet("SC[2,2]-S[2]-FC[4]", 3).eval()
    head = double_head(net)
    assert {parameter.dtype for parameter in head.parameters()} == {torch.float64}
    assert {parameter.dtype for parameter in net.parameters()} == {torch.float32}
    assert not head.training
