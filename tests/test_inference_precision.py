"""Graph layers in half precision: close to single precision, and exactly invariant to quarter turns."""

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F

from model_examples import GROUP_PYRAMID, difficult_images
from tigranet import GridLaplacian, TIGraNet, inference_precision
from tigranet.layers.steerable_conv import GroupConv

NETWORKS = {"group": GROUP_PYRAMID, "oriented": "MC[6,3]-OP[3]-MC[6,3]-R[4]-S[3]-FC[8]"}


@pytest.fixture(autouse=True)
def _hardware_with_half_precision(monkeypatch):
    """PyTorch computes in half precision on every CPU, even if slowly."""
    monkeypatch.setattr(inference_precision, "computes_with", lambda device, dtype: True)


def network(layers, window="none", dtype=torch.float32):
    net = TIGraNet(layers, 4, window=window).to(dtype)
    net.train()(difficult_images(21, dtype))  # for the running moments
    return net.eval()


@pytest.mark.parametrize("window", ["none", "disc"])
@pytest.mark.parametrize("layers", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("precision", ["bf16", "16"])
def test_quarter_turns_have_exactly_the_same_answer(layers, window, precision):
    net = network(layers, window).compute_in(precision)
    images = torch.cat([difficult_images(21), torch.rand(2, 1, 21, 21)])
    logits = net(images)
    for turns in (1, 2, 3):
        assert torch.equal(net(images.rot90(turns, (2, 3))), logits)


def test_images_that_are_not_square_may_be_turned_too():
    net = network(GROUP_PYRAMID).compute_in("bf16")
    images = torch.rand(3, 1, 24, 17)
    assert torch.equal(net.features(images.rot90(1, (2, 3))), net.features(images))


@pytest.mark.parametrize(("precision", "tolerance"), [("bf16", 0.05), ("16", 0.01)])
@pytest.mark.parametrize("layers", NETWORKS.values(), ids=NETWORKS)
def test_features_are_those_of_single_precision_but_for_rounding(layers, precision, tolerance):
    net, images = network(layers), torch.rand(6, 1, 21, 21)
    expected = net.standardise(net.features(images))
    features = net.standardise(net.compute_in(precision).features(images))
    assert features.dtype == torch.float32
    difference = (features - expected).norm() / expected.norm()
    assert 0 < difference < tolerance


def test_a_convolution_rounds_its_factors_and_its_sums():
    """Against a convolution in double precision of factors that are rounded by hand."""
    conv, laplacian = GroupConv(16, 3, orientations=8, size=3), GridLaplacian(7, 9)
    y = torch.randn(2, 16, 63)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        z = conv(y, laplacian)
    assert z.dtype == torch.float32
    padded = laplacian.pad(y.unflatten(2, (7, 9)), 1)
    exact = F.conv2d(padded.bfloat16().double(), conv.filters().detach().bfloat16().double()).flatten(2)
    assert torch.equal(z, z.bfloat16().float())
    torch.testing.assert_close(z.double(), exact, rtol=2**-8, atol=2**-8 * float(exact.abs().mean()))


def test_gradients_in_half_precision_are_those_of_single_precision_but_for_rounding():
    conv, laplacian = GroupConv(16, 3, orientations=8, size=3), GridLaplacian(7, 9)
    y, g = torch.randn(2, 16, 63, requires_grad=True), torch.randn(2, 24, 63)
    expected = torch.autograd.grad((conv(y, laplacian) * g).sum(), (y, conv.weight))
    with torch.autocast("cpu", torch.bfloat16):
        z = conv(y, laplacian)
    for gradient, reference in zip(torch.autograd.grad((z * g).sum(), (y, conv.weight)), expected, strict=True):
        assert gradient.dtype == torch.float32
        assert (gradient - reference).norm() < 0.01 * reference.norm()


def test_precisions_may_alternate():
    """The filters that are stored for one precision are not used for the other."""
    net, images = network(GROUP_PYRAMID), torch.rand(2, 1, 21, 21)
    with torch.no_grad():
        single, half = net(images), net.compute_in("bf16")(images)
        assert not torch.equal(single, half)
        assert torch.equal(net.compute_in("32")(images), single)
        assert torch.equal(net.compute_in("bf16")(images), half)


def test_training_does_not_use_it():
    net, images = network(GROUP_PYRAMID), torch.rand(4, 1, 21, 21)
    other = deepcopy(net).compute_in("bf16")
    assert torch.equal(other.train()(images), net.train()(images))


def test_a_copy_keeps_the_precision_and_a_saved_network_does_not(tmp_path):
    net, images = network(GROUP_PYRAMID).compute_in("bf16"), torch.rand(2, 1, 21, 21)
    assert torch.equal(deepcopy(net)(images), net(images))
    net.save_pretrained(tmp_path)
    assert torch.equal(TIGraNet.from_pretrained(tmp_path)(images), net.compute_in("32")(images))


def test_a_network_in_double_precision_is_not_rounded():
    net = network(GROUP_PYRAMID, dtype=torch.float64)
    images = torch.rand(2, 1, 21, 21, dtype=torch.float64)
    torch.testing.assert_close(net.compute_in("bf16")(images), net.compute_in("32")(images), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", NETWORKS)
def test_auto_is_single_precision_on_a_cpu(name):
    net, images = network(NETWORKS[name]), torch.rand(2, 1, 21, 21)
    with torch.no_grad():
        single = net(images)
        assert torch.equal(net.compute_in("auto")(images), single)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NETWORKS)
def test_auto_is_half_precision_on_a_gpu_where_it_is_faster(name):
    net, images = network(NETWORKS[name]).cuda(), torch.rand(2, 1, 21, 21).cuda()
    with torch.no_grad():
        single = net(images)
        rounds = not torch.equal(net.compute_in("auto")(images), single)
    assert rounds == (name == "group" and torch.cuda.is_bf16_supported(including_emulation=False))


def test_hardware_without_it_is_an_error_that_names_the_remedy(monkeypatch):
    monkeypatch.setattr(inference_precision, "computes_with", lambda device, dtype: False)
    net = TIGraNet("SC[2,2]-S[2]", 2)
    for precision in ("bf16", "16"):
        with pytest.raises(ValueError, match=rf"CPU .*{precision}.*'auto' or '32'"):
            net.compute_in(precision)
    assert net.compute_in("32") is net


def test_an_unknown_precision_is_an_error(without_shape_checks):
    with pytest.raises(ValueError, match=r"precision .*'8'"):
        TIGraNet("SC[2,2]-S[2]", 2).compute_in("8")


def test_a_wrong_shape_is_the_same_error_as_in_single_precision():
    net = network(GROUP_PYRAMID).compute_in("bf16")
    with pytest.raises(ValueError, match=r"\(3, 1, 8\)"):
        net.features(torch.rand(3, 1, 8))
