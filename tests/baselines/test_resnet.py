import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tigranet.baselines import ResidualArchitecture, ResNet
from tigranet.baselines.baseline import parameter_count
from tigranet.baselines.resnet import MAX_SIDE_OF_SMALL_IMAGES, ResidualBlock


@pytest.mark.parametrize(
    ("classes", "size", "parameters"), [(10, 32, 11_173_962), (1_000, 224, 11_689_512)], ids=["CIFAR-10", "ImageNet"]
)
def test_resnet18_has_the_published_number_of_parameters(classes, size, parameters):
    with torch.device("meta"):
        assert parameter_count(ResNet("resnet18", classes, size, 3)) == parameters


def test_parameters_are_counted_by_hand():
    stem = 3 * 3 * 2 * 4 + 2 * 4
    first = 2 * (3 * 3 * 4 * 4 + 2 * 4)
    second = 3 * 3 * 4 * 6 + 3 * 3 * 6 * 6 + 2 * 2 * 6 + (4 * 6 + 2 * 6)  # the last term is the shortcut
    connected = (6 * 5 + 5) + (5 * 3 + 3)
    net = ResNet("RB[4,1]-RB[6,1]-FC[5]", num_classes=3, image_size=8, in_maps=2)
    assert parameter_count(net) == stem + first + second + connected


@pytest.mark.parametrize(
    ("size", "sides"),
    [
        (MAX_SIDE_OF_SMALL_IMAGES, [48, 24, 12]),
        ((20, 48), [20, 10, 5]),
        (MAX_SIDE_OF_SMALL_IMAGES + 1, [13, 7, 4]),
        ((20, 64), [5, 3, 2]),
    ],
)
def test_small_images_keep_their_size_before_the_first_stage_and_larger_ones_are_reduced_to_a_quarter(size, sides):
    net = ResNet("RB[2,1]-RB[3,1]-RB[4,1]", 5, size)
    heights = []
    for module in net.filters:
        if isinstance(module, ResidualBlock):
            module.register_forward_hook(lambda *arguments: heights.append(arguments[2].shape[2]))
    net.eval()(torch.rand(1, *net.input_shape))
    assert heights == sides


def test_only_the_first_block_of_a_stage_changes_the_shape():
    blocks = [module for module in ResNet("RB[2,2]-RB[3,2]", 5, 16).filters if isinstance(module, ResidualBlock)]
    assert [isinstance(block.shortcut, nn.Identity) for block in blocks] == [True, True, False, True]
    assert [block.branch[0].stride for block in blocks] == [(1, 1), (1, 1), (2, 2), (1, 1)]


def test_a_block_whose_branch_is_zero_is_its_shortcut():
    block, y = ResidualBlock(3, 3).eval(), torch.randn(2, 3, 7, 5)
    nn.init.zeros_(block.branch[-1].weight)
    assert torch.equal(block(y), y.clamp(min=0))
    block = ResidualBlock(3, 4, stride=2).eval()
    nn.init.zeros_(block.branch[-1].weight)
    expected = torch.einsum("oi,bihw->bohw", block.shortcut[0].weight[:, :, 0, 0], y[:, :, ::2, ::2])
    torch.testing.assert_close(block(y), expected.clamp(min=0) / (1 + 1e-5) ** 0.5)


def test_convolutions_start_with_the_variance_of_he():
    weight = ResidualBlock(64, 64).branch[0].weight.detach()
    assert float(weight.var()) == pytest.approx(2 / (9 * 64), rel=0.05)


def test_gradients_reach_every_parameter():
    net = ResNet("RB[4,2]-RB[6,1]", 3, 12)
    F.cross_entropy(net(torch.rand(8, 1, 12, 12)), torch.arange(8) % 3).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("RB[64]", ["layer 1", "'RB[64]'", "maps, blocks", "1"]),
        ("RB[64,0]", ["layer 1", "'RB[64,0]'", "blocks", "0"]),
        ("FC[3]", ["layer 1", "'FC[3]'", "a ResNet has RB stages, then FC layers"]),
        ("resnet81", ["'resnet81'", "'resnet18'"]),
    ],
)
def test_parse_errors_name_the_layer_and_the_architecture(text, fragments):
    with pytest.raises(ValueError, match=re.escape(fragments[0])) as error:
        ResidualArchitecture.parse(text)
    for fragment in fragments:
        assert fragment in str(error.value)
