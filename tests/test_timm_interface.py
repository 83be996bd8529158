import pytest
import torch
from torch import nn

from tigranet import TIGraNet
from tigranet.timm_interface import TimmInterface, number_of_channels

ARCHITECTURE = "SC[2,2]-S[2]-FC[5]"


@pytest.fixture
def net():
    return TIGraNet(ARCHITECTURE, 3, class_names=["a", "b", "c"]).eval()


@pytest.mark.parametrize("name", ["in_maps", "in_channels", "in_chans"])
def test_the_number_of_channels_has_three_names(name):
    net = TIGraNet(ARCHITECTURE, 2, **{name: 3})
    assert net.in_maps == net.config["in_maps"] == 3
    assert not {"in_channels", "in_chans"} & net.config.keys()
    assert net(torch.rand(2, 3, 6, 6)).shape == (2, 2)


@pytest.mark.parametrize(
    "numbers", [{"in_maps": 2, "in_channels": 3}, {"in_channels": 3, "in_chans": 4}, {"in_maps": 3, "in_chans": 1}]
)
def test_two_different_numbers_of_channels_are_an_error_that_names_both(numbers):
    (first, one), (second, other) = numbers.items()
    with pytest.raises(TypeError, match=f"{first}={one}, {second}={other}"):
        TIGraNet(ARCHITECTURE, 2, **numbers)


def test_equal_numbers_of_channels_agree():
    assert number_of_channels(3, 3, 3) == 3
    assert number_of_channels(1, None, None) == 1


@pytest.mark.parametrize("number", [0, "three"])
def test_a_wrong_number_of_channels_is_an_error_under_every_name(number):
    with pytest.raises((ValueError, TypeError), match="in_maps"):
        TIGraNet(ARCHITECTURE, 2, in_channels=number)


def test_the_logits_are_the_head_of_the_features(net):
    images = torch.rand(2, 1, 8, 6)
    features = net.forward_features(images)
    assert torch.equal(features, net.features(images))
    assert features.shape == (2, net.num_features)
    assert torch.equal(net.forward_head(features), net(images))
    before_last = net.forward_head(features, pre_logits=True)
    assert before_last.shape == (2, 5)
    assert torch.equal(net.get_classifier()(before_last), net(images))


def test_a_new_classifier_has_new_classes_and_leaves_the_features(net, tmp_path):
    images = torch.rand(2, 1, 8, 6)
    features = net.features(images)
    net.double().reset_classifier(7)
    assert net.get_classifier().weight.dtype == torch.float64
    assert not net.get_classifier().training
    net.float()
    assert net(images).shape == (2, 7)
    assert net.num_classes == 7
    assert net.class_names == tuple("0123456")
    torch.testing.assert_close(net.features(images), features)
    net.save_pretrained(tmp_path)
    assert torch.equal(TIGraNet.from_pretrained(tmp_path)(images), net(images))


def test_a_new_classifier_is_initialised_as_the_first_one():
    net = TIGraNet(ARCHITECTURE, 3, init="paper")
    net.reset_classifier(1000)
    assert net.get_classifier().weight.abs().max() > 0.9


@pytest.mark.parametrize(("number", "error"), [(0, ValueError), (-1, ValueError), ("two", TypeError)])
def test_a_wrong_number_of_classes_changes_nothing(net, number, error):
    with pytest.raises(error, match="num_classes"):
        net.reset_classifier(number)
    assert net.num_classes == 3
    assert net.class_names == ("a", "b", "c")


def test_the_network_defines_its_features():
    class WithoutFeatures(TimmInterface):
        pass

    assert isinstance(WithoutFeatures(), nn.Module)
    with pytest.raises(NotImplementedError):
        WithoutFeatures().forward_features(torch.rand(1, 1, 4, 4))
