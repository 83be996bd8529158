"""The oriented networks, which extend the paper by products of gradients. Their symmetries are tested elsewhere."""

import pytest
import torch

from model_examples import oriented_network
from oracles import blank_with_patch, random_graph
from tigranet import SparseLaplacian, TIGraNet
from tigranet.architecture import FC, MC, OP, S
from tigranet.testing import SQUARE, invariance_error

SIZES = [(26, 26), (28, 28), (34, 34), (50, 37), (1, 9), (2, 2)]


@pytest.mark.parametrize(
    ("name", "minimum", "maximum"),
    [("oriented-small", 35_000, 45_000), ("oriented", 150_000, 200_000), ("oriented-large", 250_000, 300_000)],
)
def test_the_number_of_parameters_equals_a_count_by_hand(name, minimum, maximum):
    net, width, expected = TIGraNet(name, num_classes=9), 1, 0
    for layer in net.architecture.layers:
        match layer:
            case MC(maps, degree):
                expected += maps * width * (degree + 1) + maps  # alpha and the bias
                width = maps
            case OP(pairs):
                expected += 2 * pairs * width
                width += 4 * pairs
            case S(order):
                width *= 2 * (order + 1)
            case FC(units):
                expected += (width + 1) * units
                width = units
    actual = sum(parameter.numel() for parameter in net.parameters())
    assert actual == expected + (width + 1) * 9
    assert minimum <= actual <= maximum


def test_the_default_diagonal_weight_depends_on_the_layers_and_is_saved(tmp_path):
    for architecture, diagonal, expected in (("paper", None, 1.0), ("oriented", None, 0.3), ("oriented", 1.0, 1.0)):
        net = TIGraNet(architecture, num_classes=3, diagonal=diagonal)
        net.save_pretrained(tmp_path)
        loaded = TIGraNet.from_pretrained(tmp_path)
        assert loaded.diagonal == loaded.config["diagonal"] == expected
        assert loaded._grids.get(5, 5).diagonal == expected


@pytest.mark.parametrize("products", ["OP", "MP", "GP"])
def test_higher_contrast_than_in_training_does_not_blow_up_the_maps(products):
    """Without square roots, the maps of the last layer would grow with the contrast to the power of 32."""
    net = TIGraNet("-".join(5 * [f"MC[6,3]-{products}[4]"]) + "-S[1]", num_classes=3)
    images = torch.rand(8, 1, 17, 17)
    net(images)
    magnitudes = [net.eval().maps(factor * images)[-1].z.abs().max() for factor in (1, 4)]
    assert magnitudes[1] < 100 * magnitudes[0]


@pytest.mark.parametrize("smoothings", ["", ",1", ",2"])
def test_pooling_and_products_can_be_combined(smoothings):
    oriented, mirror, gradient = (f"{layer}{smoothings}]" for layer in ("OP[3", "MP[2", "GP[1"))
    net = TIGraNet(f"MC[6,3]-{oriented}-DP[120]-MC[6,3]-DP[60]-{mirror}-SC[4,2]-{gradient}-DP[30]-S[3]", 4)
    images = blank_with_patch(17, dtype=torch.float32)
    net(images)
    net.eval()
    for transform in list(SQUARE.values())[:4]:
        assert invariance_error(net, images, transform) < 1e-4
    outputs = net.maps(images)
    assert [output.z.shape[1] for output in outputs] == [6, 18, 18, 6, 6, 10, 4, 5, 5]
    for output in outputs[3:]:
        assert (output.z[~outputs[2].omega.expand_as(output.z)] == 0).all()
    assert not (outputs[-1].omega & ~outputs[4].omega).any()


def test_a_loaded_network_gives_the_same_logits_at_every_size(tmp_path):
    net = oriented_network()
    net.save_pretrained(tmp_path)
    loaded = TIGraNet.from_pretrained(tmp_path)
    assert loaded.architecture == net.architecture
    for size in SIZES:
        images = torch.rand(2, 1, *size)
        assert torch.equal(loaded(images), net(images))
        assert torch.isfinite(net(images)).all()


def test_gradient_products_work_on_any_graph_and_agree_with_the_grid():
    net = oriented_network("GP")
    graph = SparseLaplacian(random_graph())
    assert torch.isfinite(net(torch.rand(2, 1, graph.num_nodes), graph)).all()
    images = torch.rand(2, 1, 12, 15)
    grid_as_graph = SparseLaplacian.from_mask(torch.ones(12, 15, dtype=torch.bool), 8, 0.3)
    torch.testing.assert_close(net(images.flatten(2), grid_as_graph), net(images), rtol=1e-4, atol=1e-4)


def test_training_works_on_one_image_and_on_constant_images():
    for images in (torch.rand(1, 1, 9, 9), torch.zeros(2, 1, 9, 9), torch.full((2, 1, 9, 9), 0.7)):
        net = oriented_network().train()
        net(images).sum().backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())
        assert torch.isfinite(net.eval()(images)).all()


def test_an_empty_batch_gives_empty_logits():
    assert oriented_network()(torch.rand(0, 1, 9, 9)).shape == (0, 4)


def test_autocast_gives_float32_features():
    net, images = oriented_network(), torch.rand(3, 1, 12, 12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        phi = net.features(images)
    assert phi.dtype == torch.float32
    torch.testing.assert_close(phi, net.features(images), rtol=0.2, atol=0.1)


def test_only_op_layers_can_distinguish_a_shape_from_its_mirror_image():
    """Two classes of images, an L and its reflection, at several positions."""
    shape = torch.zeros(1, 1, 12, 12)
    shape[..., 2:8, 3] = shape[..., 7, 3:6] = 1
    images = torch.cat([shape.roll((i, j), (-2, -1)) for i in range(3) for j in range(4)])
    images, labels = torch.cat([images, images.flip(-1)]), torch.arange(24) // 12
    for products, can_distinguish in (("OP", True), ("MP", False), ("GP", False)):
        torch.manual_seed(0)
        net = TIGraNet(f"MC[4,2]-{products}[4]-MC[4,2]-S[1]", num_classes=2, boundary="torus")
        optimiser = torch.optim.Adam(net.parameters(), 0.02)
        for _ in range(40):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(images), labels).backward()
            optimiser.step()
        for _ in range(50):  # let the running moments converge
            net(images)
        accuracy = (net.eval()(images).argmax(1) == labels).float().mean()
        assert (accuracy == 1) == can_distinguish, products


def test_every_parameter_has_a_gradient():
    net = oriented_network(dtype=torch.float64).train()
    torch.nn.functional.cross_entropy(net(torch.rand(6, 1, 7, 7, dtype=torch.float64)), torch.arange(6) % 3).backward()
    for name, parameter in net.named_parameters():
        assert (parameter.grad != 0).any(), name
