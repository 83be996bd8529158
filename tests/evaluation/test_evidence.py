"""Evidence maps sum to what they explain, rotate with the image, and are zero where nothing speaks for the class."""

from copy import deepcopy

import pytest
import torch

from calibration import calibrate
from tigranet import TIGraNet
from tigranet.canonical_rotation import CanonicalImages
from tigranet.evaluation import evidence
from tigranet.evaluation.evidence import evidence_maps

NETWORKS = {
    "paper": ("SC[3,3]-DP[60]-SC[4,3]-DP[30]-S[4]-FC[8]-FC[6]", {}),
    "oriented": ("MC[4,3]-OP[3]-MC[5,3]-S[2]-FC[8]", {}),
    "oriented on a torus with a margin": ("MC[4,3]-OP[3]-MC[5,3]-S[2]", {"boundary": "torus", "margin": 3}),
    "products with coarsening": ("MC[4,2]-D-R[3]-D-MC[5,2]-S[1]-FC[7]", {}),
    "pyramid": ("LC[3,3]-D-GB[3]-D-GC[4,3]-MO[8]-S[0]", {}),
    "pyramid with a window and a margin": ("LC[3,3]-D-GB[3]-MO[8]-S[0]-FC[6]", {"window": "disc", "margin": 2}),
}
SIZES = {"even": (16, 16), "odd": (17, 17), "not square": (13, 18)}


@pytest.fixture(autouse=True, scope="module")
def _plain_kernels():
    """These networks are small, and compiling kernels for them would take longer than the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIGRANET_KERNELS", "plain")
        yield


@pytest.fixture(params=NETWORKS, ids=str, scope="module")
def net(request):
    architecture, options = NETWORKS[request.param]
    torch.manual_seed(0)
    return calibrate(TIGraNet(architecture, 4, **options), 16)


def affine_score(net, features, label):
    """Return the score at the mean features of the affine function that the head is near ``features``.

    A small step towards the mean is extrapolated.
    """
    head, step = deepcopy(torch.nn.Sequential(net.standardise, net.classifier)).double(), 1e-7

    def score(phi):
        logits = head(phi[None])[0].detach()
        return float(logits[label] - logits.mean())

    phi, mean = features.double(), net.standardise.mean.double()
    return score(phi) + (score(phi + step * (mean - phi)) - score(phi)) / step


@pytest.mark.parametrize("size", SIZES.values(), ids=list(SIZES))
def test_a_map_sums_to_the_score_without_the_constant(net, size):
    images = torch.rand(3, 1, *size)
    result = evidence_maps(net, images)
    with torch.no_grad():
        logits, features = net(images), net.features(images)
    torch.testing.assert_close(result.logits.float(), logits, atol=1e-4, rtol=1e-4)
    assert result.classes.tolist() == logits.argmax(1).tolist()
    centred = logits - logits.mean(1, keepdim=True)
    torch.testing.assert_close(result.scores.float(), centred.amax(1), atol=1e-4, rtol=1e-4)
    assert result.maps.shape == (3, *size)
    total = result.maps.double().sum((1, 2)) + result.constants
    torch.testing.assert_close(total, result.scores)
    expected = [affine_score(net, phi, label) for phi, label in zip(features, result.classes, strict=True)]
    assert result.constants.tolist() == pytest.approx(expected, abs=2e-4 * max(1.0, float(result.scores.abs().max())))


@pytest.mark.parametrize("size", SIZES.values(), ids=list(SIZES))
def test_maps_rotate_with_the_image_exactly(net, size):
    images = torch.rand(3, 1, *size)
    expected = evidence_maps(net, images)
    for turn in (1, 2, 3):
        rotated = evidence_maps(net, torch.rot90(images, turn, (2, 3)))
        assert torch.equal(rotated.maps, torch.rot90(expected.maps, turn, (1, 2)))
        assert torch.equal(rotated.logits, expected.logits)


def test_they_rotate_up_to_rounding_without_the_canonical_rotation(net, monkeypatch):
    """The canonical rotation removes rounding errors; the symmetry is that of the network."""
    unchanged = lambda images: CanonicalImages(images, torch.zeros(len(images), dtype=torch.int64))  # noqa: E731
    monkeypatch.setattr(evidence, "canonical_rotation", unchanged)
    net.double()
    images = torch.rand(2, 1, 16, 16, dtype=torch.float64)
    expected, rotated = evidence_maps(net, images).maps, evidence_maps(net, torch.rot90(images, 1, (2, 3))).maps
    net.float()
    torch.testing.assert_close(
        torch.rot90(expected, 1, (1, 2)), rotated, rtol=0, atol=1e-9 * float(expected.abs().max())
    )


def test_the_evidence_for_all_classes_sums_to_zero(net):
    """Scores are relative to the mean of all logits."""
    images = torch.rand(1, 1, 16, 16).expand(4, -1, -1, -1)
    result = evidence_maps(net, images, torch.arange(4))
    scale = float(result.maps.abs().max())
    torch.testing.assert_close(result.maps.sum(0), torch.zeros(16, 16), atol=1e-4 * scale, rtol=0)
    assert float(result.scores.sum()) == pytest.approx(0, abs=1e-9)


def test_a_linear_head_has_the_same_constant_for_every_image_of_a_class():
    torch.manual_seed(0)
    net = calibrate(TIGraNet("MC[4,3]-S[0]", 3), 16)
    constants = evidence_maps(net, torch.rand(5, 1, 16, 16), torch.zeros(5, dtype=torch.int64)).constants
    assert constants.tolist() == pytest.approx([float(constants[0])] * 5, abs=1e-5)


def test_with_order_0_a_pixel_has_the_evidence_of_its_own_values():
    """Mean and variance of the last maps themselves: the evidence is a function of their values at the pixel."""
    torch.manual_seed(0)
    net = calibrate(TIGraNet("SC[3,0]-S[0]", 3), 16)  # a filter of degree 0 does not look at neighbours
    image = (torch.rand(1, 1, 10, 10) > 0.5).float()
    values = evidence_maps(net, image).maps[0]
    is_white = image[0, 0] > 0
    for part in (values[is_white], values[~is_white]):
        assert float(part.max() - part.min()) < 1e-6
    assert float((values[is_white].mean() - values[~is_white].mean()).abs()) > 1e-5


def test_a_network_without_standardisation_has_zero_as_reference():
    torch.manual_seed(0)
    net = TIGraNet("SC[3,2]-S[1]-FC[5]", 3, init="paper").eval()
    blank = evidence_maps(net, torch.zeros(1, 1, 8, 8))
    assert blank.maps.abs().max() == 0
    assert torch.equal(blank.constants, blank.scores)


def test_nothing_is_changed_and_empty_batches_work(net):
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    images = torch.rand(2, 1, 16, 16)
    with torch.inference_mode():
        inside = evidence_maps(net, images.clone())
    assert torch.equal(inside.maps, evidence_maps(net, images).maps)
    assert evidence_maps(net, images[:0]).maps.shape == (0, 16, 16)
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())
    assert all(parameter.grad is None for parameter in net.parameters())


def test_wrong_inputs_are_named(net, without_shape_checks):
    images = torch.rand(2, 1, 16, 16)
    for classes in ([0], [0, 4], [-1, 0]):
        with pytest.raises(ValueError, match=r"0 to 3.*2 images"):
            evidence_maps(net, images, torch.tensor(classes))
    with pytest.raises(ValueError, match="shape"):
        evidence_maps(net, torch.rand(2, 3, 16, 16))
    with pytest.raises(ValueError, match="evaluation mode"):
        evidence_maps(net.train(), images)
    net.eval()
