import copy
import shutil
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import blank_with_patch, random_graph
from tigranet import Architecture, GridLaplacian, SparseLaplacian, TIGraNet
from tigranet.architecture import FC, MC, OP, S
from tigranet.layers import Standardise
from tigranet.testing import SQUARE, equivariance_error, invariance_error, torus_shift, torus_shifts

SIZES = [(26, 26), (28, 28), (34, 34), (50, 37)]


def count(*modules):
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def difficult_images(size=28, dtype=torch.float32):
    """Noise, blank backgrounds, constants, lines along the border."""
    images = [
        torch.rand(3, 1, size, size, dtype=dtype),
        blank_with_patch(size, dtype=dtype),
        torch.zeros(1, 1, size, size, dtype=dtype),
        torch.full((1, 1, size, size), 0.7, dtype=dtype),
        torch.eye(size, dtype=dtype).reshape(1, 1, size, size),
    ]
    corner = torch.zeros(1, 1, size, size, dtype=dtype)
    corner[..., 0, :] = 1
    return torch.cat([*images, corner])


def maps_as_images(net, size):
    """All active sets of the network, as one function from images to images."""

    def active(images):
        sets = [maps.active for maps in net.maps(images) if maps.active is not None]
        return torch.cat(sets, dim=1).unflatten(-1, (size, size)).float()

    return active


# it is what the paper says


def test_the_parameters_of_paper_small_by_hand():
    net = TIGraNet("paper-small", num_classes=3)
    spectral = (3 * (3 + 1) + 1) + (6 * (3 + 1) + 3)  # alpha: K_l (M+1), beta: K_{l-1}
    phi = 6 * 2 * (10 + 1)
    connected = (phi * 50 + 50) + (50 * 30 + 30) + (30 * 10 + 10) + (10 * 3 + 3)
    assert (spectral, connected) == (40, 8523)
    assert count(net.graph_layers) == spectral
    assert count(net.classifier) == connected
    assert count(net) == spectral + connected  # standardisation has no parameters


def test_the_parameters_of_paper_by_hand():
    net = TIGraNet("paper", num_classes=9)
    spectral = (10 * (4 + 1) + 1) + (20 * (4 + 1) + 10)
    phi = 20 * 2 * (12 + 1)
    connected = (phi * 500 + 500) + (500 * 300 + 300) + (300 * 100 + 100) + (100 * 9 + 9)
    assert (spectral, connected) == (161, 441_809)
    assert count(net.graph_layers) == spectral
    assert count(net.classifier) == connected
    assert count(net) == spectral + connected


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("oriented-small", 35_000, 45_000), ("oriented", 150_000, 200_000), ("oriented-large", 250_000, 300_000)],
)
def test_the_parameters_of_the_oriented_networks_by_hand(name, least, most):
    net, width, wanted = TIGraNet(name, num_classes=9), 1, 0
    for layer in net.architecture.layers:
        match layer:
            case MC(maps, degree):
                wanted += maps * width * (degree + 1) + maps  # alpha and the bias
                width = maps
            case OP(pairs):
                wanted += 2 * pairs * width
                width += 4 * pairs
            case S(order):
                width *= 2 * (order + 1)
            case FC(units):
                wanted += (width + 1) * units
                width = units
    assert count(net) == wanted + (width + 1) * 9
    assert least <= count(net) <= most


def test_it_is_its_layers_one_after_the_other():
    net = TIGraNet("SC[2,3]-DP[60]-SC[4,2]-DP[20]-S[3]-FC[5]", num_classes=3).eval()
    images, grid = torch.rand(2, 1, 9, 9), GridLaplacian(9, 9)
    conv1, pool1, conv2, pool2 = net.graph_layers
    z1 = conv1(images.flatten(2), grid)
    omega = pool1(z1).any(1, keepdim=True)
    z2 = conv2(z1, grid, omega)  # reads z1 itself, answers on omega (reading 3)
    phi = net.statistics(z2, grid, pool2(z2, omega))
    torch.testing.assert_close(net.features(images), phi)
    torch.testing.assert_close(net(images), net.classifier(net.standardise(phi)))


def test_layers_without_pooling_and_a_convolution_after_the_last_pooling():
    images = torch.rand(2, 1, 8, 8)
    assert TIGraNet("SC[2,3]-SC[4,2]-S[3]", num_classes=3)(images).shape == (2, 3)
    maps = TIGraNet("SC[2,3]-DP[10]-SC[4,2]-S[3]", num_classes=3).maps(images)
    assert maps[-1].active is None
    assert (maps[-1].z[~maps[1].omega.expand_as(maps[-1].z)] == 0).all()


def test_the_papers_start():
    net = TIGraNet("paper-small", num_classes=3, init="paper")
    assert isinstance(net.standardise, torch.nn.Identity)
    for parameter in net.classifier.parameters():
        assert parameter.abs().max() <= 1
    weights = net.classifier[0].weight
    assert weights.std().item() == pytest.approx(3**-0.5, rel=0.05)
    default = TIGraNet("paper-small", num_classes=3)
    assert isinstance(default.standardise, Standardise)
    assert torch.equal(net.graph_layers[0].alpha, default.graph_layers[0].alpha)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["keep", "strict"]), st.sampled_from(["noise", "patch", "steps"]))
def test_the_sets_of_nodes_are_embedded(seed, ties, kind):
    """Omega^l contains Omega^{l+1}; with ties="strict" no map has more than J_l active nodes."""
    torch.manual_seed(seed)
    net = TIGraNet("SC[3,3]-DP[90]-SC[4,2]-DP[40]-SC[2,2]-DP[10]-S[2]", num_classes=2, ties=ties)
    images = torch.rand(2, 1, 14, 13)
    if kind == "patch":
        images[:, :, 5:] = 0
    elif kind == "steps":
        images = images.round(decimals=1)
    omega, pooled = torch.ones(2, 1, 14 * 13, dtype=torch.bool), [90, 40, 10]
    for maps in net.maps(images):
        if maps.active is not None:
            assert not (maps.omega & ~omega).any()
            assert torch.equal(maps.active.any(1, keepdim=True), maps.omega)
            omega = maps.omega
            num_active = pooled.pop(0)
            sizes = maps.active.sum(-1)
            assert (sizes <= num_active).all() if ties == "strict" else (sizes >= 1).all()
    assert not pooled


# it has the symmetry it claims


@pytest.mark.parametrize("name", SQUARE)
def test_no_logit_of_a_trained_network_changes_when_the_image_is_turned_or_reflected(trained, name):
    """By the range of the logits of each image alone, which is the harder test."""
    for image in difficult_images().split(1):
        assert invariance_error(trained, image, SQUARE[name]) < 1e-4
    double = copy.deepcopy(trained).double()
    for image in difficult_images(dtype=torch.float64).split(1):
        assert invariance_error(double, image, SQUARE[name]) < 1e-10


@pytest.mark.parametrize("name", SQUARE)
def test_no_logit_of_a_trained_network_changes_for_real_digits(trained, mnist_012, name):
    assert invariance_error(trained, mnist_012.test.images, SQUARE[name]) < 1e-4


def test_no_logit_of_a_network_trained_on_the_torus_changes_for_any_shift(trained_on_torus, mnist_012):
    images = torch.cat([mnist_012.test.images[:2], difficult_images()[3:7]])
    shifted = torch.stack([shift(images) for shift in torus_shifts(28, 28)])  # all 784 of them
    with torch.inference_mode():
        logits = trained_on_torus(shifted.flatten(0, 1)).unflatten(0, (784, len(images)))
    assert (logits - logits[0]).abs().max() / (logits.max() - logits.min()) < 1e-4
    double = copy.deepcopy(trained_on_torus).double()
    shifts = [torus_shift(3, 5), torus_shift(14, 27), torus_shift(-1, 0), torus_shift(0, 1)]
    for transform in (*SQUARE.values(), *shifts):
        assert invariance_error(double, difficult_images(dtype=torch.float64), transform) < 1e-10
        assert invariance_error(trained_on_torus, difficult_images(), transform) < 1e-4


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["paper-small", "paper"]), st.sampled_from([17, 26]))
def test_no_logit_of_an_untrained_network_changes_either(seed, preset, size):
    torch.manual_seed(seed)
    net = TIGraNet(preset, num_classes=5, init="paper").eval()
    images = torch.cat([torch.rand(1, 1, size, size), blank_with_patch(size, count=1, seed=seed)])
    assert max(invariance_error(net, images, transform) for transform in SQUARE.values()) < 1e-4


def test_the_active_sets_of_trained_networks_are_the_same_sets_turned_and_shifted(trained, trained_on_torus, mnist_012):
    images = torch.cat([mnist_012.test.images[:20], blank_with_patch(28)])
    for transform in SQUARE.values():
        assert equivariance_error(maps_as_images(trained, 28), images, transform) == 0
    for shift in (torus_shift(1, 0), torus_shift(13, 22)):
        assert equivariance_error(maps_as_images(trained_on_torus, 28), images, shift) == 0


@pytest.mark.parametrize("preset", ["paper-small", "paper"])
def test_rounding_is_far_smaller_than_the_tolerance_of_ties(preset):
    """The largest difference between float32 and float64 maps, by the map's largest magnitude."""
    net, images = TIGraNet(preset, num_classes=3), difficult_images()
    double = copy.deepcopy(net).double()
    for single, exact in zip(net.maps(images), double.maps(images.double()), strict=True):
        magnitude = exact.z.abs().amax(-1, keepdim=True).clamp(min=1e-30)
        assert ((single.z - exact.z).abs() / magnitude).max() < 2e-5


@pytest.mark.parametrize("preset", ["paper-small", "paper"])
def test_on_blank_backgrounds_the_active_sets_are_the_same_sets_turned_shifted_and_in_float64(preset):
    images = blank_with_patch(30, patch=8, count=4)
    for boundary in ("free", "torus"):
        net = TIGraNet(preset, num_classes=3, boundary=boundary)
        active = maps_as_images(net, 30)
        for transform in SQUARE.values():
            assert equivariance_error(active, images, transform) == 0
        if boundary == "torus":
            for shift in (torus_shift(1, 0), torus_shift(0, 1), torus_shift(13, 22), torus_shift(-3, 9)):
                assert equivariance_error(active, images, shift) == 0
        double = maps_as_images(copy.deepcopy(net).double(), 30)
        assert torch.equal(active(images), double(images.double()))


def test_on_blank_backgrounds_strict_top_j_fails():
    images = blank_with_patch(30, patch=8, count=4)
    active = maps_as_images(TIGraNet("paper-small", num_classes=3, ties="strict"), 30)
    assert max(equivariance_error(active, images, transform) for transform in SQUARE.values()) == 1


def oriented(products="OP", boundary="free", dtype=torch.float32):
    """A small oriented network whose running moments are those of some images."""
    net = TIGraNet(f"MC[6,3]-{products}[3]-MC[6,3]-{products}[3]-S[3]-FC[8]", 4, boundary=boundary).to(dtype)
    net.train()(difficult_images(17, dtype))
    return net.eval()


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("products", ["OP", "MP", "GP"])
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_oriented_networks_are_exact_under_quarter_turns_shifts_and_but_for_op_reflections(
    boundary, products, dtype, most
):
    net, images = oriented(products, boundary, dtype), difficult_images(17, dtype)
    for name, transform in SQUARE.items():
        error = invariance_error(net.features, images, transform)
        assert error > 1e-3 if products == "OP" and "reflected" in name else error < most, name
    for shift in (torus_shift(3, 5), torus_shift(-1, 16)):
        assert (invariance_error(net.features, images, shift) < most) == (boundary == "torus")


def test_the_weight_of_the_diagonals_is_the_papers_unless_layers_are_mixed_and_is_kept(tmp_path):
    for architecture, diagonal, wanted in (("paper", None, 1.0), ("oriented", None, 0.3), ("oriented", 1.0, 1.0)):
        net = TIGraNet(architecture, num_classes=3, diagonal=diagonal)
        net.save_pretrained(tmp_path)
        assert TIGraNet.from_pretrained(tmp_path)._graph(5, 5).diagonal == wanted


@pytest.mark.parametrize("products", ["OP", "MP", "GP"])
def test_more_contrast_than_was_ever_seen_does_not_blow_up_the_maps(products):
    """Without roots the maps of the last layer would be the contrast to the power of 32 times larger."""
    net = TIGraNet("-".join(5 * [f"MC[6,3]-{products}[4]"]) + "-S[1]", num_classes=3)
    images = torch.rand(8, 1, 17, 17)
    net(images)
    largest = [net.eval().maps(factor * images)[-1].z.abs().max() for factor in (1, 4)]
    assert largest[1] < 100 * largest[0]


@pytest.mark.parametrize("smoothed", ["", ",1", ",2"])
def test_pooling_composes_with_products(smoothed):
    oriented, mirror, gradient = (f"{name}{smoothed}]" for name in ("OP[3", "MP[2", "GP[1"))
    net = TIGraNet(f"MC[6,3]-{oriented}-DP[120]-MC[6,3]-DP[60]-{mirror}-SC[4,2]-{gradient}-DP[30]-S[3]", 4)
    images = blank_with_patch(17, dtype=torch.float32)
    net(images)
    net.eval()
    for transform in list(SQUARE.values())[:4]:
        assert invariance_error(net, images, transform) < 1e-4
    maps = net.maps(images)
    assert [z.z.shape[1] for z in maps] == [6, 18, 18, 6, 6, 10, 4, 5, 5]
    for z in maps[3:]:
        assert (z.z[~maps[2].omega.expand_as(z.z)] == 0).all()
    assert not (maps[-1].omega & ~maps[4].omega).any()


def test_oriented_networks_run_at_every_size_and_load_as_they_were_saved(tmp_path):
    net = oriented()
    net.save_pretrained(tmp_path)
    loaded = TIGraNet.from_pretrained(tmp_path)
    assert loaded.architecture == net.architecture
    for size in (*SIZES, (1, 9), (2, 2)):
        images = torch.rand(2, 1, *size)
        assert torch.equal(loaded(images), net(images))
        assert torch.isfinite(net(images)).all()


def test_gradient_products_run_on_any_graph_and_on_the_grid_as_a_graph():
    net = oriented("GP")
    graph = SparseLaplacian(random_graph())
    assert torch.isfinite(net(torch.rand(2, 1, graph.num_nodes), graph)).all()
    images, whole = torch.rand(2, 1, 12, 15), SparseLaplacian.from_mask(torch.ones(12, 15, dtype=torch.bool), 8, 0.3)
    torch.testing.assert_close(net(images.flatten(2), whole), net(images), rtol=1e-4, atol=1e-4)


def test_an_oriented_network_trains_on_one_image_on_constants_and_answers_none():
    for images in (torch.rand(1, 1, 9, 9), torch.zeros(2, 1, 9, 9), torch.full((2, 1, 9, 9), 0.7)):
        net = oriented().train()
        net(images).sum().backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())
        assert torch.isfinite(net.eval()(images)).all()
    assert net(torch.rand(0, 1, 9, 9)).shape == (0, 4)


def test_an_oriented_network_under_autocast():
    net, images = oriented(), torch.rand(3, 1, 12, 12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        phi = net.features(images)
    assert phi.dtype == torch.float32
    torch.testing.assert_close(phi, net.features(images), rtol=0.2, atol=0.1)


# it learns


def test_an_oriented_network_tells_a_shape_from_its_mirror_image_where_the_others_cannot():
    """Two kinds of image, an L and its reflection, each shifted about."""
    shape = torch.zeros(1, 1, 12, 12)
    shape[..., 2:8, 3] = shape[..., 7, 3:6] = 1
    images = torch.cat([shape.roll((i, j), (-2, -1)) for i in range(3) for j in range(4)])
    images, labels = torch.cat([images, images.flip(-1)]), torch.arange(24) // 12
    for products, sees in (("OP", True), ("MP", False), ("GP", False)):
        torch.manual_seed(0)
        net = TIGraNet(f"MC[4,2]-{products}[4]-MC[4,2]-S[1]", num_classes=2, boundary="torus")
        optimiser = torch.optim.Adam(net.parameters(), 0.02)
        for _ in range(40):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(images), labels).backward()
            optimiser.step()
        for _ in range(50):  # the running moments catch up
            net(images)
        assert ((net.eval()(images).argmax(1) == labels).float().mean() == 1) == sees, products


def test_every_parameter_of_an_oriented_network_moves():
    net = oriented(dtype=torch.float64).train()
    torch.nn.functional.cross_entropy(net(torch.rand(6, 1, 7, 7, dtype=torch.float64)), torch.arange(6) % 3).backward()
    for name, parameter in net.named_parameters():
        assert (parameter.grad != 0).any(), name


def test_every_parameter_moves():
    net = TIGraNet("SC[2,2]-DP[30]-SC[3,2]-DP[15]-S[2]-FC[4]", num_classes=3).double()
    images = torch.rand(6, 1, 7, 7, dtype=torch.float64)
    torch.nn.functional.cross_entropy(net(images), torch.arange(6) % 3).backward()
    for name, parameter in net.named_parameters():
        assert (parameter.grad != 0).any(), name


def test_gradcheck_through_the_whole_network():
    net = TIGraNet("SC[2,2]-DP[12]-SC[2,1]-DP[6]-S[2]-FC[4]", num_classes=3).double().eval()
    images = torch.rand(2, 1, 4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(net, images)
    assert torch.autograd.gradcheck(
        lambda alpha: torch.func.functional_call(net, {"graph_layers.0.alpha": alpha}, images),
        net.graph_layers[0].alpha,
    )


# it is a well-behaved module


def test_one_checkpoint_runs_at_every_size_and_on_a_mask_shaped_graph(trained, tmp_path):
    trained.save_pretrained(tmp_path)
    net = TIGraNet.from_pretrained(tmp_path)
    for size in SIZES:
        assert torch.isfinite(net(torch.rand(2, 1, *size))).all()
    rows, columns = torch.meshgrid(torch.arange(30), torch.arange(40), indexing="ij")
    mask = ((rows - 14) / 13) ** 2 + ((columns - 20) / 18) ** 2 < 1
    signals = torch.rand(2, 1, 30, 40)[..., mask]
    logits = net(signals, SparseLaplacian.from_mask(mask))
    assert logits.shape == (2, 3)
    assert torch.isfinite(logits).all()


def test_a_graph_that_is_the_grid_gives_the_grids_answer(trained):
    images = torch.rand(2, 1, 12, 15)
    graph = SparseLaplacian.from_mask(torch.ones(12, 15, dtype=torch.bool))
    torch.testing.assert_close(trained(images.flatten(2), graph), trained(images), rtol=1e-4, atol=1e-4)


def test_one_graph_is_kept_for_each_size():
    net = TIGraNet("SC[1,1]-S[1]", num_classes=2)
    for size in (5, 6, 5, 6, 5):
        net(torch.rand(2, 1, size, size))
    assert list(net._graphs) == [(5, 5), (6, 6)]


def test_state_dict_holds_learned_numbers_only():
    net = TIGraNet("paper-small", num_classes=3)
    before = set(net.state_dict())
    net(torch.rand(2, 1, 28, 28))
    assert set(net.state_dict()) == before
    assert before == {name for name, _ in net.named_parameters()} | {
        f"standardise.{name}" for name in ("mean", "variance", "batches")
    }


COMPILED = """
import sys
import torch
from tigranet import TIGraNet

torch.manual_seed(0)
net = TIGraNet(sys.argv[2], num_classes=3).eval()
images = torch.rand(3, 1, 12, 11)
images[1, :, 4:] = 0
compiled = torch.compile(net, fullgraph=True, backend=sys.argv[1])
with torch.inference_mode():
    inferred = compiled(images)  # the compiler meets a new size while it traces
wanted = net(images)
torch.testing.assert_close(inferred, wanted, rtol=1e-4, atol=1e-4)
came = torch.autograd.grad(compiled(images).square().mean(), net.parameters())
plain = torch.autograd.grad(wanted.square().mean(), net.parameters())
for a, b in zip(came, plain, strict=True):
    torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4 * float(b.abs().max()))
other = torch.rand(2, 1, 9, 14)  # another size
torch.testing.assert_close(compiled(other), net(other), rtol=1e-4, atol=1e-4)
"""


@pytest.mark.parametrize(
    ("architecture", "backend"),
    [
        ("SC[2,2]-DP[60]-SC[3,2]-DP[30]-S[4]-FC[8]", "inductor"),
        ("MC[2,1]-OP[1]-MC[2,1]-OP[1,1]-S[1]", "aot_eager"),  # Inductor's C++ for it takes minutes to compile
    ],
)
def test_compiled_whole_it_gives_the_same_answer_and_gradients(architecture, backend):
    """In a process of its own, where no types are checked while it runs; Inductor needs a C++ compiler."""
    if not (shutil.which("g++") or shutil.which("clang++")):
        backend = "aot_eager"
    command = [sys.executable, "-c", COMPILED, backend, architecture]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_autocast_keeps_the_graph_in_float32(trained):
    images = difficult_images()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        phi, logits = trained.features(images), trained(images)
    assert torch.equal(phi, trained.features(images))
    assert torch.isfinite(logits).all()
    agree = (logits.argmax(1) == trained(images).argmax(1)).float().mean()
    assert agree >= 0.9


def test_float64_is_close_to_float32(trained, mnist_012):
    double = copy.deepcopy(trained).double()
    logits = trained(mnist_012.test.images)
    torch.testing.assert_close(double(mnist_012.test.images.double()).float(), logits, rtol=1e-2, atol=1e-2)


def test_a_batch_is_its_images_one_by_one(trained):
    images = difficult_images()
    one_by_one = torch.cat([trained(image.unsqueeze(0)) for image in images])
    torch.testing.assert_close(trained(images), one_by_one, rtol=1e-4, atol=1e-4)


def test_a_batch_of_one_trains():
    net = TIGraNet("paper-small", num_classes=3).train()
    net(torch.rand(1, 1, 28, 28)).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_a_constant_image_is_answered_and_trains(value):
    net = TIGraNet("paper-small", num_classes=3, boundary="torus").train()
    logits = net(torch.full((2, 1, 28, 28), value))
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())


def test_an_empty_batch_is_answered_with_none(trained):
    assert trained(torch.rand(0, 1, 28, 28)).shape == (0, 3)


def test_several_channels():
    net = TIGraNet("paper-small", num_classes=3, in_maps=3)
    assert net.graph_layers[0].beta.shape == (3,)
    assert net(torch.rand(2, 3, 20, 20)).shape == (2, 3)


def test_an_architecture_may_be_given_parsed():
    architecture = Architecture.parse("SC[1,1]-S[1]")
    assert TIGraNet(architecture, num_classes=2).config["architecture"] == "SC[1,1]-S[1]"
    assert "'SC[1,1]-S[1]', num_classes=2, in_maps=1, boundary='free'" in repr(TIGraNet(architecture, num_classes=2))


def test_a_nan_is_not_hidden(trained):
    images = torch.rand(1, 1, 28, 28)
    images[0, 0, 5, 5] = torch.nan
    assert trained(images).isnan().all()


def test_it_can_be_copied(trained):
    images = torch.rand(2, 1, 28, 28)
    assert torch.equal(copy.deepcopy(trained)(images), trained(images))
