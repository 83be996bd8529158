"""Graphs and networks on a GPU. These tests need one."""

import copy

import pytest
import torch

from model_examples import GROUP_PYRAMID
from oracles import blank_with_patch, random_graph
from tigranet import GridLaplacian, SparseLaplacian, TIGraNet
from tigranet.layers.background_margin import add_margin
from tigranet.testing import SQUARE, invariance_error, torus_shift

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "graph", [GridLaplacian(6, 7), GridLaplacian(6, 7, boundary="torus"), SparseLaplacian(random_graph())]
)
def test_a_laplacian_computes_on_the_device_of_the_signal(graph):
    y = torch.rand(2, 3, graph.num_nodes, dtype=torch.float64)
    result = graph(y.cuda())
    assert result.is_cuda
    torch.testing.assert_close(result.cpu(), graph(y), rtol=0, atol=1e-14)


def test_edges_and_masks_may_be_on_the_device():
    mask = torch.ones(3, 4, dtype=torch.bool, device="cuda")
    assert SparseLaplacian.from_mask(mask).num_nodes == 12
    assert SparseLaplacian.from_edges(torch.tensor([[0, 1], [1, 0]], device="cuda")).num_nodes == 2


@pytest.mark.parametrize(
    "graph", [GridLaplacian(6, 7), GridLaplacian(6, 7, boundary="torus"), SparseLaplacian(random_graph())]
)
def test_a_graph_is_coarsened_on_the_device_of_the_signal(graph):
    y = torch.rand(2, 3, graph.num_nodes, dtype=torch.float64, requires_grad=True)
    result, omega = graph.coarsening(y.cuda()), torch.rand(2, 1, graph.num_nodes) < 0.3
    torch.testing.assert_close(result.cpu(), graph.coarsening(y), rtol=0, atol=1e-14)
    assert torch.equal(graph.coarsening.nodes(omega.cuda()).cpu(), graph.coarsening.nodes(omega))
    (expected,) = torch.autograd.grad(graph.coarsening(y).square().sum(), y)
    (actual,) = torch.autograd.grad(result.square().sum(), y)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "preset",
    ["paper-small", "paper", "oriented-small", "oriented-large", "pyramid-tiny", "pyramid-small", GROUP_PYRAMID],
)
def test_a_network_gives_the_results_of_the_cpu(preset):
    net = TIGraNet(preset, num_classes=3).double().eval()
    images = torch.cat([torch.rand(3, 1, 28, 28, dtype=torch.float64), blank_with_patch(28, dtype=torch.float64)])
    net_on_gpu = copy.deepcopy(net).cuda()
    torch.testing.assert_close(net_on_gpu(images.cuda()).cpu(), net(images), rtol=1e-9, atol=1e-9)
    for mine, other in zip(net.maps(images), net_on_gpu.maps(images.cuda()), strict=True):
        assert mine.active is None or torch.equal(mine.active, other.active.cpu())


def test_a_margin_is_recorded_in_a_cuda_graph_and_has_deterministic_gradients():
    images, other = torch.rand(2, 5, 2, 9, 12).unbind()
    stored = images.cuda()
    graph = torch.cuda.CUDAGraph()
    add_margin(stored, 3)  # the first call may allocate memory
    with torch.cuda.graph(graph):
        padded = add_margin(stored, 3)
    for batch in (images, other):
        stored.copy_(batch)
        graph.replay()
        assert torch.equal(padded.cpu(), add_margin(batch, 3))
    torch.use_deterministic_algorithms(True)
    try:
        stored.requires_grad_()
        (gradient,) = torch.autograd.grad(add_margin(stored, 3).sum(), stored)
    finally:
        torch.use_deterministic_algorithms(False)
    (expected,) = torch.autograd.grad(add_margin(other.requires_grad_(), 3).sum(), other)
    assert torch.equal(gradient.cpu(), expected)


@pytest.mark.parametrize("preset", ["paper-small", "paper"])
def test_a_network_has_its_symmetries_on_the_device(preset):
    images = torch.cat([torch.rand(20, 1, 26, 26), blank_with_patch(26, count=20)]).cuda()
    for boundary in ("free", "torus"):
        net = TIGraNet(preset, num_classes=3, boundary=boundary).eval().cuda()
        transforms = [*SQUARE.values(), *([torus_shift(5, 9)] if boundary == "torus" else [])]
        assert max(invariance_error(net, images, transform) for transform in transforms) < 1e-4


@pytest.mark.parametrize("preset", ["oriented-small", "pyramid-small", GROUP_PYRAMID])
def test_an_oriented_network_is_exact_on_the_device(preset):
    images = torch.rand(20, 1, 32, 32).cuda()
    for boundary in ("free", "torus"):
        net = TIGraNet(preset, num_classes=3, boundary=boundary).cuda()
        net(images)
        transforms = [*list(SQUARE.values())[:4], *([torus_shift(8, -16)] if boundary == "torus" else [])]
        assert max(invariance_error(net.eval().features, images, transform) for transform in transforms) < 1e-5


@pytest.mark.parametrize(
    "preset", ["paper-small", "oriented-small", "oriented-large", "pyramid-tiny", "pyramid-small", GROUP_PYRAMID]
)
def test_a_network_trains_on_the_device_and_under_autocast(preset):
    net = TIGraNet(preset, num_classes=3).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        net(torch.rand(4, 1, 28, 28, device="cuda")).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())


@pytest.mark.parametrize("layers", ["oriented-small", GROUP_PYRAMID])
@pytest.mark.parametrize(("precision", "tolerance"), [("bf16", 0.05), ("16", 0.01)])
def test_half_precision_is_close_and_exact_under_quarter_turns(layers, precision, tolerance):
    net = TIGraNet(layers, num_classes=3).cuda()
    images = torch.rand(8, 1, 28, 28).cuda()
    net.train()(images)
    expected = net.eval().standardise(net.features(images))
    features = net.compute_in(precision).features(images)
    assert features.dtype == torch.float32
    assert (net.standardise(features) - expected).norm() < tolerance * expected.norm()
    for turns in (1, 2, 3):
        assert torch.equal(net.features(images.rot90(turns, (2, 3))), features)
