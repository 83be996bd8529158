import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tigranet import TIGraNet
from tigranet.baselines import ConvArchitecture, ConvNet, comparable_convnet
from tigranet.baselines.baseline import parameter_count
from tigranet.baselines.convnet import GAP, C, P
from tigranet.notation import FC
from tigranet.testing import SQUARE, invariance_error, torus_shift

# It is the network of the paper


@given(
    st.lists(st.builds(C, st.integers(1, 99)) | st.builds(P, st.integers(1, 9)), max_size=6),
    st.lists(st.builds(GAP, st.integers(1, 9)), max_size=1),
    st.lists(st.builds(FC, st.integers(1, 999)), max_size=3),
)
def test_parsing_the_text_of_an_architecture_gives_it_back(convolutions, averages, connected):
    architecture = ConvArchitecture((C(3), *convolutions, *averages, *connected))
    assert ConvArchitecture.parse(str(architecture)) == architecture
    assert str(ConvArchitecture.parse(str(architecture))) == str(architecture)


def test_presets_are_the_rows_of_table_1():
    text = "C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]"
    assert str(ConvArchitecture.parse(text)) == text
    assert ConvArchitecture.parse("paper").layers == (C(10), P(2), C(20), P(2), FC(500), FC(300), FC(100))
    assert ConvArchitecture.parse("paper-small").layers == (C(3), P(2), C(6), P(2), FC(50), FC(30), FC(10))


def test_parameters_are_counted_by_hand():
    filters = (3 * 9 + 3) + (6 * 3 * 9 + 6)
    connected = (50 * 30 + 30) + (30 * 10 + 10) + (10 * 3 + 3)
    unpadded, padded = ConvNet("paper-small", 3, 28), ConvNet("paper-small", 3, 28, border="zeros")
    assert parameter_count(unpadded) == filters + (6 * 5 * 5 * 50 + 50) + connected == 9_621
    assert parameter_count(padded) == filters + (6 * 7 * 7 * 50 + 50) + connected == 16_821


def test_it_has_roughly_as_many_parameters_as_tigranet_as_stated_in_the_paper():
    filters = (10 * 9 + 10) + (20 * 10 * 9 + 20)
    connected = (20 * 5 * 5 * 500 + 500) + (500 * 300 + 300) + (300 * 100 + 100) + (100 * 9 + 9)
    assert parameter_count(ConvNet("paper", 9, 26)) == filters + connected == 433_729
    assert parameter_count(ConvNet("paper", 9, 26)) == pytest.approx(parameter_count(TIGraNet("paper", 9)), rel=0.02)
    assert parameter_count(ConvNet("paper-small", 3, 28)) == pytest.approx(
        parameter_count(TIGraNet("paper-small", 3)), rel=0.15
    )


@pytest.mark.parametrize(
    ("preset", "tigranet_preset", "classes", "size"), [("gap-small", "paper-small", 3, 28), ("gap", "paper", 9, 26)]
)
def test_presets_with_global_average_have_roughly_as_many_parameters_as_tigranet(
    preset, tigranet_preset, classes, size
):
    assert parameter_count(ConvNet(preset, classes, size)) == pytest.approx(
        parameter_count(TIGraNet(tigranet_preset, classes)), rel=0.15
    )


def test_logits_equal_the_layers_written_out():
    net = ConvNet("C[2]-P[2]-FC[4]", num_classes=3, image_size=(6, 8), in_maps=2, border="zeros")
    images = torch.rand(5, 2, 6, 8)
    conv, (first, last) = net.filters[0], (net.classifier[0], net.classifier[2])
    z = F.conv2d(F.pad(images, (1, 1, 1, 1)), conv.weight, conv.bias).clamp(min=0)
    pooled = z.unfold(2, 2, 2).unfold(3, 2, 2).amax((-2, -1)).reshape(5, -1)
    expected = (pooled @ first.weight.T + first.bias).clamp(min=0) @ last.weight.T + last.bias
    torch.testing.assert_close(net(images), expected)


def test_unpadded_filters_equal_padded_filters_away_from_the_border():
    unpadded, padded = (ConvNet("C[2]-C[3]", 3, 8, border=border) for border in ("none", "zeros"))
    for target, source in zip(unpadded.filters, padded.filters, strict=True):
        target.load_state_dict(source.state_dict())
    images = torch.rand(5, 1, 8, 8)
    maps = padded.filters(images).unflatten(1, (3, 8, 8))[..., 2:-2, 2:-2]
    torch.testing.assert_close(unpadded.filters(images), maps.flatten(1))


# It has no rotation symmetry, which is why it is a baseline


def test_rotating_the_image_changes_the_logits():
    net, images = ConvNet("paper-small", 3, 28), torch.rand(4, 1, 28, 28)
    assert (net(images) - net(torch.rot90(images, 1, (2, 3)))).abs().max() > 1e-3


def test_with_global_average_shifts_do_not_change_the_features_but_rotations_do():
    net, images = ConvNet("C[8]-P[2]-C[16]-GAP[1]", 3, 28), torch.zeros(4, 1, 28, 28)
    images[..., 10:18, 10:18] = torch.rand(4, 1, 8, 8)
    features = net.filters
    assert invariance_error(features, images, torus_shift(4, -2)) < 1e-5  # a multiple of the pooling stride
    assert invariance_error(features, images, SQUARE["90 degrees"]) > 1e-2


# It learns


def test_gradients_reach_every_parameter():
    net = ConvNet("C[3]-P[2]-C[4]-FC[6]", 3, 12)
    F.cross_entropy(net(torch.rand(64, 1, 12, 12)), torch.arange(64) % 3).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


# It is a well-behaved module


@pytest.mark.parametrize("size", [10, 11, (13, 12), (28, 28), 64])
def test_the_image_size_is_a_constructor_argument(size):
    height, width = (size, size) if isinstance(size, int) else size
    net = ConvNet("paper-small", 5, size, in_maps=3)
    assert net(torch.rand(2, 3, height, width)).shape == (2, 5)
    assert net.extra_repr() == f"'{net.architecture}', num_classes=5, input_shape=(3, {height}, {width})"


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("C[3,3]-FC[5]", ["layer 1", "'C[3,3]'", "'C[3,3]-FC[5]'", "filters", "2"]),
        ("C[3]-P[0]", ["layer 2", "'P[0]'", "'C[3]-P[0]'", "side", "1", "0"]),
        ("C[3]-DP[3]", ["layer 2", "'DP'", "'C[3]-DP[3]'", "GAP"]),
        ("P[2]-C[3]", ["layer 1", "'P[2]'", "'P[2]-C[3]'", "a ConvNet has C and P layers, beginning with C"]),
        ("C[3]-GAP[1]-C[3]", ["layer 3", "'C[3]'", "FC"]),
        ("C[3]-FC[5]-P[2]", ["layer 3", "'P[2]'", "FC"]),
        ("papr", ["'papr'", "'paper'"]),
    ],
)
def test_parse_errors_name_the_layer_and_the_architecture(text, fragments):
    with pytest.raises(ValueError, match=re.escape(fragments[0])) as error:
        ConvArchitecture.parse(text)
    for fragment in fragments:
        assert fragment in str(error.value)


def test_images_of_the_wrong_size_are_rejected(without_shape_checks):
    with pytest.raises(ValueError, match=r"layer 4 \('P\[2\]'\).*2x2.*1x1.*3x3"):
        ConvNet("paper-small", 3, 3, border="zeros")
    with pytest.raises(ValueError, match=r"layer 3 \('C\[6\]'\).*3x3.*2x2.*7x7"):
        ConvNet("paper-small", 3, 7)
    with pytest.raises(ValueError, match=r"at least 1.*0, 1, 28 and 28"):
        ConvNet("paper-small", 0, 28)
    with pytest.raises(ValueError, match=r"\(batch, 1, 28, 28\).*\(2, 1, 26, 26\)"):
        ConvNet("paper-small", 3, 28)(torch.rand(2, 1, 26, 26))


# The comparable ConvNet


@pytest.mark.parametrize(("size", "maps", "classes"), [(28, 1, 3), (64, 1, 6), (50, 3, 8), (26, 1, 9)])
@pytest.mark.parametrize("preset", ["paper-small", "paper"])
def test_a_comparable_network_has_nearly_the_same_number_of_parameters(preset, size, maps, classes):
    net = TIGraNet(preset, classes, maps)
    units = tuple(layer.units for layer in net.architecture.layers if isinstance(layer, FC))
    baseline = comparable_convnet(parameter_count(net), units, classes, size, maps)
    assert parameter_count(baseline) == pytest.approx(parameter_count(net), rel=0.15)
    assert baseline.architecture.layers[0].filters >= 5  # enough filters to be a serious baseline
    assert baseline(torch.rand(1, maps, size, size)).shape == (1, classes)


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_very_small_images_have_a_comparable_network(size):
    assert comparable_convnet(10, (), 2, size)(torch.rand(1, 1, size, size)).shape == (1, 2)


def test_the_search_for_a_comparable_network_uses_no_random_numbers():
    torch.manual_seed(3)
    comparable = comparable_convnet(8_700, (50, 30, 10), 3, 28)
    torch.manual_seed(3)
    direct = ConvNet(comparable.architecture, 3, 28, border="zeros")
    assert all(torch.equal(a, b) for a, b in zip(comparable.parameters(), direct.parameters(), strict=True))
