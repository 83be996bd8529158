"""Networks with coarsening, residual blocks, group convolutions, the disc window and a margin."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from model_examples import difficult_images
from tigranet import Architecture, GridLaplacian, SparseLaplacian, TIGraNet
from tigranet.architecture import PRESETS
from tigranet.layers.disc_window import window_images, window_maps
from tigranet.model_limits import count_parameters
from tigranet.testing import SQUARE, blobs, invariance_error, torus_shift

GROUP = "LC[2,3]-GB[3]-D-GC[3,3]-GB[3]-MO[5]-S[1]-FC[6]"
PRODUCTS = "MC[5,3]-R[3]-D-MC[6,2]-R[2,0,1]-D-S[1]"
MIXED = "MC[4,2]-D-LC[2,5,4]-D-GB[3]-MO[5]-OP[2]-MC[4,1]-S[0]"
QUARTER_TURNS = [move for name, move in SQUARE.items() if "reflected" not in name]


def network(architecture, size=17, dtype=torch.float64, **options):
    """A network in evaluation mode. Its running moments come from a batch of difficult images."""
    torch.manual_seed(0)
    net = TIGraNet(architecture, 4, **options).to(dtype)
    net.train()(difficult_images(size, dtype))
    return net.eval()


# the network computes what its notation says


def test_the_network_equals_its_layers_applied_one_by_one():
    net, images = network(GROUP), torch.rand(3, 1, 10, 13, dtype=torch.float64)
    grid = GridLaplacian(10, 13, diagonal=net.diagonal)
    lift, block, _, conv, second_block, maximum = net.graph_layers
    z = grid.coarsening(block(lift(net.standardise_images(images.flatten(2)), grid), grid))
    coarse = GridLaplacian(5, 7, diagonal=net.diagonal)
    z = maximum(second_block(conv(z, coarse), coarse), coarse)
    expected = net.classifier(net.standardise(net.statistics(z, coarse)))
    torch.testing.assert_close(net(images), expected)


def test_maps_tell_the_graph_of_every_layer():
    sizes = [
        (maps.laplacian.height, maps.laplacian.width) for maps in network(MIXED).maps(difficult_images(11).double())
    ]
    assert sizes == [(11, 11), (6, 6), (6, 6), (3, 3), (3, 3), (3, 3), (3, 3), (3, 3)]


@pytest.mark.parametrize("architecture", [GROUP, PRODUCTS, MIXED, *(name for name in PRESETS if "pyramid" in name)])
@pytest.mark.parametrize("in_maps", [1, 3])
def test_parameters_are_counted_as_pytorch_counts_them(architecture, in_maps):
    with torch.device("meta"):
        net = TIGraNet(architecture, 7, in_maps)
    expected = sum(parameter.numel() for parameter in net.parameters())
    assert count_parameters(Architecture.parse(architecture), 7, in_maps) == expected
    assert net.num_features == net.standardise.num_statistics


# the network has the symmetry that it claims


@pytest.mark.parametrize("architecture", [GROUP, PRODUCTS, MIXED])
@pytest.mark.parametrize("window", ["none", "disc"])
@pytest.mark.parametrize("margin", [0, 3])
def test_quarter_turns_do_not_change_the_answer(architecture, window, margin):
    net = network(architecture, window=window, margin=margin)
    for size in (13, 16):
        images = difficult_images(size, torch.float64)
        assert max(invariance_error(net, images, move) for move in QUARTER_TURNS) < 1e-10


@settings(deadline=None, max_examples=15)
@given(st.integers(5, 24), st.integers(5, 24), st.sampled_from([GROUP, PRODUCTS, MIXED]))
def test_quarter_turns_do_not_change_the_answer_for_any_height_and_width(height, width, architecture):
    net, images = network(architecture), torch.rand(2, 1, height, width, dtype=torch.float64)
    torch.testing.assert_close(net(images.rot90(1, (2, 3))), net(images), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("architecture", [GROUP, PRODUCTS])
def test_on_the_torus_shifts_by_a_multiple_of_all_coarsenings_are_exact(architecture):
    net, images = network(architecture, size=16, boundary="torus"), difficult_images(16, torch.float64)
    step = 2**net.architecture.num_coarsenings
    assert invariance_error(net, images, torus_shift(step, -2 * step)) < 1e-10
    assert invariance_error(net, images, torus_shift(1, 0)) > 1e-6


def test_smooth_images_hardly_change_the_features_for_any_angle():
    net = network(GROUP, size=28, dtype=torch.float32)
    upright = net.features(blobs())
    scale = upright.std(0, keepdim=True) + 1e-3
    for degrees in (15, 45, 100):
        assert ((net.features(blobs(degrees)) - upright) / scale).abs().mean() < 0.15


# window and margin


def test_the_window_is_applied_to_the_image_and_to_the_maps_of_every_level():
    plain, windowed = network(GROUP), network(GROUP, window="disc")
    windowed.load_state_dict(plain.state_dict())
    images = torch.rand(2, 1, 12, 12, dtype=torch.float64)
    signals = plain.standardise_images(window_images(images).flatten(2))
    z, grid = signals, GridLaplacian(12, 12, diagonal=plain.diagonal)
    for layer in plain.graph_layers:
        if grid.height == 12 and layer is plain.graph_layers[2]:
            z, grid = layer(z, grid), grid.coarsening.laplacian
        else:
            z = window_maps(layer(z, grid), grid.height, grid.width)
    torch.testing.assert_close(windowed.features(images), plain.statistics(z, grid))
    assert not torch.allclose(windowed.features(images), plain.features(images))


def test_the_corners_do_not_matter_with_a_window():
    net, images = network(GROUP, window="disc"), torch.rand(2, 1, 16, 16, dtype=torch.float64)
    changed = images.clone()
    changed[..., :2, :2] = 0
    torch.testing.assert_close(net(changed), net(images))


def test_the_margin_is_a_border_of_background():
    net, padded = network(GROUP, margin=4), network(GROUP)
    padded.load_state_dict(net.state_dict())
    images = torch.full((2, 1, 9, 7), 0.3, dtype=torch.float64)
    images[..., 3:, 2:5] = torch.rand(2, 1, 6, 3, dtype=torch.float64)  # touches the bottom
    torch.testing.assert_close(net(images), padded(F.pad(images, (4, 4, 4, 4), value=0.3)), rtol=0, atol=0)
    assert not torch.allclose(net(images), padded(F.pad(images, (4, 4, 4, 4), mode="replicate")))


def test_a_margin_makes_shifts_on_a_plain_background_exact_as_far_as_the_filters_reach():
    """The filters of this network reach 4 pixels, and the object stays inside the frame."""
    images = torch.full((1, 1, 12, 12), 0.2, dtype=torch.float64)
    images[..., 4:7, 5:8] = torch.rand(3, 3, dtype=torch.float64)
    shifts = [torus_shift(down, right) for down, right in itertools.product((-3, 0, 4), (-4, 0, 3))]
    errors = {}
    for margin in (0, 8):
        net = network("LC[2,3]-GB[3]-MO[5]-S[0]", margin=margin)
        errors[margin] = max(invariance_error(net, images, shift) for shift in shifts)
    assert errors[8] < 1e-12
    assert errors[0] > 1e-9


@pytest.mark.parametrize(
    ("architecture", "background", "margin"),
    [("SC[3,2]-S[2]", 0.0, 5), ("SC[3,2]-S[2]", 0.3, 9), ("LC[2,3]-GB[3]-MO[5]-S[0]", 0.3, 3)],
    ids=["black", "grey", "group convolutions"],
)
def test_an_object_that_is_shifted_to_the_frame_has_the_same_features(architecture, background, margin, monkeypatch):
    """The margin is as wide as the filters reach, and not a pixel wider.

    SC and S reach 4 pixels: the object must not reach the outermost pixels of the margin, which have fewer neighbours.
    L is not zero on a constant image there, so on a grey background, the filters of these pixels must not reach those
    of the object either. LC and GB reach 3 pixels, and are zero on a constant image.
    """
    patch = torch.rand(3, 3, dtype=torch.float64) / 2 + 0.4

    def image(row, column):
        result = torch.full((1, 1, 12, 12), background, dtype=torch.float64)
        result[..., row : row + 3, column : column + 3] = patch
        return result

    @torch.no_grad()
    def error(net):
        expected = net.features(image(4, 4))
        changes = [net.features(image(*place)) - expected for place in ((0, 4), (9, 9), (4, 9), (0, 0))]
        return float(torch.cat(changes).abs().amax() / expected.abs().amax())

    net = network(architecture, margin=margin)
    assert error(net) < 1e-14
    assert error(network(architecture, margin=margin - 1)) > 1e-7
    monkeypatch.setattr("tigranet.model.add_margin", lambda x, width: F.pad(x, (width,) * 4, mode="replicate"))
    assert error(net) > 1e-2


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_an_image_without_pixels_is_an_error_also_with_a_margin(shape):
    with pytest.raises(ValueError, match=rf"{shape[0]} x {shape[1]}"):
        TIGraNet("SC[2,2]-S[2]", 2, margin=2)(torch.rand(2, 1, *shape))


def test_signals_on_a_graph_have_neither_window_nor_margin():
    net = network(PRODUCTS, window="disc", margin=3)
    plain = network(PRODUCTS)
    plain.load_state_dict(net.state_dict())
    images, grid = torch.rand(2, 1, 10, 10, dtype=torch.float64), GridLaplacian(10, 10, diagonal=net.diagonal)
    torch.testing.assert_close(net(images.flatten(2), grid), plain(images))


# other graphs, gradients, copies, precision


def test_coarsening_works_on_sparse_graphs():
    mask = torch.rand(14, 14) < 0.9
    net = network("SC[4,3]-DP[20]-D-SC[5,2]-MC[6,2]-GP[2]-D-MC[4,1]-S[2]", dtype=torch.float32)
    graph = SparseLaplacian.from_mask(mask)
    logits = net(torch.rand(3, 1, graph.num_nodes), graph)
    assert logits.shape == (3, 4)
    assert logits.isfinite().all()


def test_group_convolutions_need_a_grid():
    graph = SparseLaplacian([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    with pytest.raises(TypeError, match=r"LiftingConv.*grid.*GP"):
        TIGraNet(GROUP, 2)(torch.rand(1, 1, 3), graph)


@pytest.mark.parametrize("architecture", [GROUP, PRODUCTS, MIXED])
def test_every_parameter_has_a_gradient(architecture):
    net = TIGraNet(architecture, 4, window="disc", margin=1)
    net(torch.rand(5, 1, 12, 12)).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


def test_gradcheck_with_respect_to_the_image():
    net = network("LC[2,3,4]-GB[3]-D-MO[3]-S[0]", window="disc", margin=1)
    assert gradcheck(net, torch.rand(1, 1, 5, 6, dtype=torch.float64, requires_grad=True), atol=1e-4)


def test_a_saved_network_gives_the_same_answer(tmp_path):
    net, images = network(GROUP, window="disc", margin=2, dtype=torch.float32), torch.rand(2, 1, 15, 15)
    net.save_pretrained(tmp_path / "m")
    loaded = TIGraNet.from_pretrained(tmp_path / "m")
    assert (loaded.window, loaded.margin) == ("disc", 2)
    torch.testing.assert_close(loaded(images), net(images), rtol=0, atol=0)


def test_bfloat16_autocast_gives_nearly_the_same_answer():
    net, images = network(GROUP, dtype=torch.float32), difficult_images(17)
    with torch.autocast("cpu", torch.bfloat16):
        logits = net(images)
    expected = net(images)
    assert (logits.float() - expected).abs().mean() < 0.05 * expected.std()


def test_dropout_is_off_unless_it_is_set():
    net = network(GROUP).train()
    net.standardise.eval()
    net.dropout.p = 0.5
    features = net.features(difficult_images(17, torch.float64))
    dropped = net.dropout(net.standardise(features))
    assert (dropped == 0).float().mean() > 0.2
    assert network(GROUP).dropout.p == 0


def test_images_that_are_too_small_to_coarsen_are_an_error():
    with pytest.raises(ValueError, match=r"2 x 2.*fewer coarsenings"):
        TIGraNet(PRODUCTS, 2)(torch.rand(2, 1, 4, 4))
