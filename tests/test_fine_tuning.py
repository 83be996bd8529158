import pytest
import torch

from tigranet import Architecture, TIGraNet
from tigranet.architecture import PRESETS
from tigranet.data.luminance import luminance
from tigranet.fine_tuning import DEFAULT_STARTS, adapted, default_start, load_start


@pytest.fixture
def saved(tmp_path):
    TIGraNet("SC[2,2]-S[2]", 2, boundary="torus", window="disc", margin=2).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_options_that_are_not_given_are_those_of_the_network(saved):
    net = load_start(saved)
    assert (net.boundary, net.window, net.margin) == ("torus", "disc", 2)
    assert load_start(saved, Architecture.parse("SC[2,2]-S[2]"), "torus", "disc", 2).config == net.config


@pytest.mark.parametrize(
    "arguments", [{"architecture": Architecture.parse("paper")}, {"window": "none"}, {"margin": 1}]
)
def test_other_options_are_errors_that_name_the_network_and_the_option(saved, arguments):
    with pytest.raises(ValueError, match=f"{next(iter(arguments))}.*{saved}"):
        load_start(saved, **arguments)


def test_a_network_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_start(tmp_path / "nowhere")


LAYERS = ["MC[3,2]-OP[2]-MC[4,2]-S[1]", "LC[2,3,4]-GB[3]-D-MO[3]-S[0]"]


def trained(layers, channels):
    """A network in evaluation mode whose moments are those of some images."""
    torch.manual_seed(0)
    network = TIGraNet(layers, 3, in_maps=channels, window="disc")
    network(torch.rand(20, channels, 9, 9) / 2)
    return network.eval()


@pytest.mark.parametrize("layers", LAYERS)
def test_a_network_for_grey_images_reads_colour_images_by_their_luminance(layers):
    grey = trained(layers, 1)
    images = torch.rand(4, 3, 9, 9)
    torch.testing.assert_close(adapted(grey, 3)(images), grey(luminance(images)), atol=1e-5, rtol=1e-5)


def test_a_network_for_grey_images_reads_the_mean_of_other_numbers_of_channels():
    grey = trained(LAYERS[0], 1)
    images = torch.rand(4, 5, 9, 9)
    torch.testing.assert_close(adapted(grey, 5)(images), grey(images.mean(1, keepdim=True)), atol=1e-5, rtol=1e-5)


def test_a_network_for_colour_images_reads_grey_ones_as_three_equal_channels():
    colour = trained(LAYERS[0], 3)  # it does not standardise its images, so the answers are equal
    images = torch.rand(4, 1, 9, 9)
    torch.testing.assert_close(adapted(colour, 1)(images), colour(images.expand(-1, 3, -1, -1)), atol=1e-5, rtol=1e-5)


def test_a_network_that_standardises_equal_channels_reads_grey_images_as_three_of_them():
    colour = trained(LAYERS[1], 3)
    for moment in (colour.standardise_images.mean, colour.standardise_images.variance):
        moment.copy_(moment.mean())
    images = torch.rand(4, 1, 9, 9)
    torch.testing.assert_close(adapted(colour, 1)(images), colour(images.expand(-1, 3, -1, -1)), atol=1e-5, rtol=1e-5)


def test_a_copy_keeps_dtype_mode_and_configuration_and_shares_nothing():
    network = trained(LAYERS[0], 1).double()
    copy = adapted(network, 2, window="none")
    assert copy.config == network.config | {"in_maps": 2, "window": "none"}
    assert not copy.training
    assert {parameter.dtype for parameter in copy.parameters()} == {torch.float64}
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.zero_()
    assert any(parameter.any() for parameter in network.parameters())
    assert adapted(network, 1) is network


@pytest.mark.parametrize(("layers", "channels", "images"), [("SC[2,2]-S[1]", 1, 3), (LAYERS[0], 3, 2)])
def test_channels_without_a_rule_are_errors(layers, channels, images):
    with pytest.raises(ValueError, match=f"{channels} channels.*{images}"):
        adapted(TIGraNet(layers, 2, in_maps=channels), images)


def test_a_copy_with_more_coarsenings_has_the_same_weights():
    network = TIGraNet("MC[3,2]-OP[2]-D-MC[4,2]-S[1]", 3)
    copy = adapted(network, 1, Architecture.parse("MC[3,2]-D-OP[2]-D-D-MC[4,2]-S[1]"))
    assert copy(torch.rand(2, 1, 16, 16)).shape == (2, 3)
    pairs = zip(network.parameters(), copy.parameters(), strict=True)
    assert all(torch.equal(own, other) for own, other in pairs)
    assert str(adapted(copy, 1, network.architecture).architecture) == str(network.architecture)
    with pytest.raises(ValueError, match=r"coarsenings.*MC\[5,2\]"):
        adapted(network, 1, Architecture.parse("MC[3,2]-OP[2]-D-MC[5,2]-S[1]"))


@pytest.mark.parametrize(("preset", "name"), DEFAULT_STARTS.items())
def test_default_starts_have_the_layers_of_their_preset(preset, name):
    start = default_start(preset, 300, 1, "free", "none", 0)
    assert str(start.network.architecture) == PRESETS[preset]
    assert (start.name, start.network.in_maps, start.network.window) == (name, 1, "none")


@pytest.mark.parametrize(
    "arguments",
    [
        ("paper", 300, 1, "free", "none", 0),
        ("pyramid-small", 300, 1, "torus", "none", 0),
        ("pyramid-small", 300, 1, "free", "none", 2),
        ("pyramid-large", 300, 4, "free", "disc", 0),
        ("pyramid-large", 300, 3, "free", "disc", 0, "cifar10"),
        ("pyramid-small", 5_000, 1, "free", "none", 0),
    ],
)
def test_trainings_that_no_network_suits_start_from_random_weights(arguments):
    assert default_start(*arguments) is None
