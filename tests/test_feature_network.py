import pytest
import torch

from tigranet import Architecture, TIGraNet
from tigranet.feature_network import (
    FEATURE_ARCHITECTURE,
    check_channels,
    fast_feature_architecture,
    feature_architecture,
    is_saved_network,
    load_feature_network,
    untrained_network,
    with_linear_head,
)


def test_moments_of_group_convolutions_come_from_the_images():
    images = torch.rand(20, 1, 12, 12)
    torch.manual_seed(0)
    net = untrained_network("LC[2,3]-MO[3]-S[1]", images)
    torch.manual_seed(0)
    brighter = untrained_network("LC[2,3]-MO[3]-S[1]", 100 * images)
    assert not net.training
    torch.testing.assert_close(brighter.features(100 * images), net.features(images), rtol=1e-2, atol=1e-3)


def test_other_networks_do_not_depend_on_the_images():
    images = torch.rand(20, 1, 12, 12)
    torch.manual_seed(0)
    net = untrained_network("MC[4,2]-OP[2]-MC[4,2]-S[1]", images)
    torch.manual_seed(0)
    plain = TIGraNet("MC[4,2]-OP[2]-MC[4,2]-S[1]", 1)
    assert all(torch.equal(*pair) for pair in zip(net.state_dict().values(), plain.state_dict().values(), strict=True))


@pytest.mark.parametrize("shape", [(1, 1, 2, 2), (1, 1, 1, 2), (3, 2, 5, 9)])
def test_small_and_odd_images_have_finite_features(shape):
    images = torch.rand(shape)
    assert untrained_network(feature_architecture(images), images).features(images).isfinite().all()
    assert (str(feature_architecture(images)) == FEATURE_ARCHITECTURE) == (max(shape[2:]) > 7)


def test_the_features_of_the_default_do_not_change_under_quarter_turns():
    images = torch.rand(4, 1, 16, 16, dtype=torch.float32)
    net = untrained_network(FEATURE_ARCHITECTURE, images)
    torch.testing.assert_close(net.features(images.rot90(1, (2, 3))), net.features(images), rtol=1e-4, atol=1e-5)


def test_saved_networks_are_told_from_architectures(tmp_path):
    assert is_saved_network(tmp_path)
    assert is_saved_network("paper-eth80")
    assert is_saved_network("somebody/network")
    for name in ("paper", "SC[2,2]-S[2]", "nonsense"):
        assert not is_saved_network(name)


def test_channels_are_compared():
    assert load_feature_network("paper-mnist-012", torch.rand(2, 1, 8, 8)).num_classes == 3
    with pytest.raises(ValueError, match=r"1 channels.*3.*grey"):
        load_feature_network("paper-mnist-012", torch.rand(2, 3, 8, 8))
    with pytest.raises(ValueError, match=r"3 channels.*1.*colour"):
        check_channels(TIGraNet("SC[2,2]-S[2]", 2, 3), "x", torch.rand(2, 1, 8, 8))


def test_a_linear_head_keeps_the_moments_of_images_and_maps():
    images = 0.5 + 0.1 * torch.rand(3, 1, 9, 9)
    net = untrained_network("LC[2,3]-MO[3]-S[1]", images)
    assert torch.equal(with_linear_head(net, 4).features(images), net.features(images))


def test_a_linear_head_keeps_the_features():
    net = TIGraNet("SC[2,2]-DP[9]-S[2]-FC[7]", 3, boundary="torus", margin=1, class_names=["a", "b", "c"])
    linear = with_linear_head(net, 4, class_names=["w", "x", "y", "z"])
    images = torch.rand(3, 1, 9, 9)
    assert torch.equal(linear.features(images), net.features(images))
    assert (linear.boundary, linear.margin, linear.class_names) == ("torus", 1, ("w", "x", "y", "z"))
    assert linear.architecture == Architecture.parse("SC[2,2]-DP[9]-S[2]")
    assert not linear.training


@pytest.mark.parametrize(("side", "more"), [(5, 0), (64, 0), (65, 1), (128, 1), (129, 2), (224, 2)])
def test_large_images_are_coarsened_earlier_for_a_first_answer(side, more):
    images = torch.rand(2, 1, side, side)
    layers, usual = fast_feature_architecture(images), feature_architecture(images)
    assert layers.num_coarsenings == usual.num_coarsenings + more
    assert untrained_network(layers, images).features(images).isfinite().all()
