import copy
import json
import pickle
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model_examples import difficult_images
from tigranet import Architecture, GridLaplacian, SparseLaplacian, TIGraNet
from tigranet.graphs.grid_cache import MAX_GRIDS
from tigranet.layers import Standardise

SIZES = [(26, 26), (28, 28), (34, 34), (50, 37)]


def count_parameters(*modules):
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


# The network of the paper.


def test_the_number_of_parameters_of_paper_small_equals_a_count_by_hand():
    net = TIGraNet("paper-small", num_classes=3)
    spectral = (3 * (3 + 1) + 1) + (6 * (3 + 1) + 3)  # alpha: K_l (M+1), beta: K_{l-1}
    phi = 6 * 2 * (10 + 1)
    fully_connected = (phi * 50 + 50) + (50 * 30 + 30) + (30 * 10 + 10) + (10 * 3 + 3)
    assert (spectral, fully_connected) == (40, 8523)
    assert count_parameters(net.graph_layers) == spectral
    assert count_parameters(net.classifier) == fully_connected
    assert count_parameters(net) == spectral + fully_connected  # standardisation has no parameters


def test_the_number_of_parameters_of_paper_equals_a_count_by_hand():
    net = TIGraNet("paper", num_classes=9)
    spectral = (10 * (4 + 1) + 1) + (20 * (4 + 1) + 10)
    phi = 20 * 2 * (12 + 1)
    fully_connected = (phi * 500 + 500) + (500 * 300 + 300) + (300 * 100 + 100) + (100 * 9 + 9)
    assert (spectral, fully_connected) == (161, 441_809)
    assert count_parameters(net.graph_layers) == spectral
    assert count_parameters(net.classifier) == fully_connected
    assert count_parameters(net) == spectral + fully_connected


def test_the_network_equals_its_layers_applied_one_by_one():
    net = TIGraNet("SC[2,3]-DP[60]-SC[4,2]-DP[20]-S[3]-FC[5]", num_classes=3).eval()
    images, grid = torch.rand(2, 1, 9, 9), GridLaplacian(9, 9)
    conv1, pool1, conv2, pool2 = net.graph_layers
    z1 = conv1(images.flatten(2), grid)
    omega = pool1(z1).any(1, keepdim=True)
    z2 = conv2(z1, grid, omega)  # it reads all of z1 and writes on omega only (reading 3)
    phi = net.statistics(z2, grid, pool2(z2, omega))
    torch.testing.assert_close(net.features(images), phi)
    torch.testing.assert_close(net(images), net.classifier(net.standardise(phi)))


def test_pooling_may_be_missing_or_followed_by_a_convolution():
    images = torch.rand(2, 1, 8, 8)
    assert TIGraNet("SC[2,3]-SC[4,2]-S[3]", num_classes=3)(images).shape == (2, 3)
    outputs = TIGraNet("SC[2,3]-DP[10]-SC[4,2]-S[3]", num_classes=3).maps(images)
    assert outputs[-1].active is None
    assert (outputs[-1].z[~outputs[1].omega.expand_as(outputs[-1].z)] == 0).all()


def test_the_initialisation_of_the_paper():
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
def test_the_sets_of_nodes_are_nested(seed, ties, kind):
    """Omega^l contains Omega^{l+1}. With ties="strict" no map has more than J_l active nodes."""
    torch.manual_seed(seed)
    net = TIGraNet("SC[3,3]-DP[90]-SC[4,2]-DP[40]-SC[2,2]-DP[10]-S[2]", num_classes=2, ties=ties)
    images = torch.rand(2, 1, 14, 13)
    if kind == "patch":
        images[:, :, 5:] = 0
    elif kind == "steps":
        images = images.round(decimals=1)
    omega, remaining_sizes = torch.ones(2, 1, 14 * 13, dtype=torch.bool), [90, 40, 10]
    for output in net.maps(images):
        if output.active is not None:
            assert not (output.omega & ~omega).any()
            assert torch.equal(output.active.any(1, keepdim=True), output.omega)
            omega = output.omega
            num_active = remaining_sizes.pop(0)
            sizes = output.active.sum(-1)
            assert (sizes <= num_active).all() if ties == "strict" else (sizes >= 1).all()
    assert not remaining_sizes


# Learning.


def test_every_parameter_has_a_gradient():
    net = TIGraNet("SC[2,2]-DP[30]-SC[3,2]-DP[15]-S[2]-FC[4]", num_classes=3).double()
    images = torch.rand(6, 1, 7, 7, dtype=torch.float64)
    torch.nn.functional.cross_entropy(net(images), torch.arange(6) % 3).backward()
    for name, parameter in net.named_parameters():
        assert (parameter.grad != 0).any(), name


def test_gradcheck_of_the_whole_network():
    net = TIGraNet("SC[2,2]-DP[12]-SC[2,1]-DP[6]-S[2]-FC[4]", num_classes=3).double().eval()
    images = torch.rand(2, 1, 4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(net, images)
    assert torch.autograd.gradcheck(
        lambda alpha: torch.func.functional_call(net, {"graph_layers.0.alpha": alpha}, images),
        net.graph_layers[0].alpha,
    )


def test_a_batch_of_one_image_trains():
    net = TIGraNet("paper-small", num_classes=3).train()
    net(torch.rand(1, 1, 28, 28)).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_constant_images_give_finite_logits_and_gradients(value):
    net = TIGraNet("paper-small", num_classes=3, boundary="torus").train()
    logits = net(torch.full((2, 1, 28, 28), value))
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())


# Image sizes and graphs.


def test_one_checkpoint_works_at_every_size_and_on_a_masked_grid(trained, tmp_path):
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


def test_the_grid_as_a_sparse_graph_gives_the_same_logits(trained):
    images = torch.rand(2, 1, 12, 15)
    graph = SparseLaplacian.from_mask(torch.ones(12, 15, dtype=torch.bool))
    torch.testing.assert_close(trained(images.flatten(2), graph), trained(images), rtol=1e-4, atol=1e-4)


def test_one_grid_is_cached_per_size():
    net = TIGraNet("SC[1,1]-S[1]", num_classes=2)
    for size in (5, 6, 5, 6, 5):
        net(torch.rand(2, 1, size, size))
    assert net._grids.sizes == [(6, 6), (5, 5)]


def test_the_number_of_cached_grids_is_bounded():
    net = TIGraNet("SC[1,1]-S[1]", num_classes=2)
    for width in range(2, 40):
        net(torch.rand(1, 1, 3, width))
    assert len(net._grids.sizes) == MAX_GRIDS


def test_threads_with_many_sizes_get_the_same_logits_as_one_thread():
    net = TIGraNet("SC[2,2]-DP[9]-S[2]", num_classes=2).eval()
    batches = [torch.rand(2, 1, 3 + i % 13, 4 + i % 5) for i in range(60)]
    with torch.no_grad():
        expected = [copy.deepcopy(net)(images) for images in batches]

    def predict(images):
        with torch.no_grad():
            return net(images)

    with ThreadPoolExecutor(8) as pool:
        for actual, logits in zip(pool.map(predict, batches), expected, strict=True):
            assert torch.equal(actual, logits)


def test_a_batch_gives_the_logits_of_its_images(trained):
    images = difficult_images()
    one_by_one = torch.cat([trained(image.unsqueeze(0)) for image in images])
    torch.testing.assert_close(trained(images), one_by_one, rtol=1e-4, atol=1e-4)


def test_an_empty_batch_gives_empty_logits(trained):
    assert trained(torch.rand(0, 1, 28, 28)).shape == (0, 3)


def test_images_may_have_several_channels():
    net = TIGraNet("paper-small", num_classes=3, in_maps=3)
    assert net.graph_layers[0].beta.shape == (3,)
    assert net(torch.rand(2, 3, 20, 20)).shape == (2, 3)


def test_a_nan_in_the_image_gives_nan_logits(trained):
    images = torch.rand(1, 1, 28, 28)
    images[0, 0, 5, 5] = torch.nan
    assert trained(images).isnan().all()


# Precision.


def test_autocast_computes_the_features_in_float32(trained):
    images = difficult_images()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        phi, logits = trained.features(images), trained(images)
    assert torch.equal(phi, trained.features(images))
    assert torch.isfinite(logits).all()
    agreement = (logits.argmax(1) == trained(images).argmax(1)).float().mean()
    assert agreement >= 0.9


def test_float64_is_close_to_float32(trained, mnist_012):
    double = copy.deepcopy(trained).double()
    logits = trained(mnist_012.test.images)
    torch.testing.assert_close(double(mnist_012.test.images.double()).float(), logits, rtol=1e-2, atol=1e-2)


# Function transforms.


@pytest.mark.parametrize(
    "layers",
    [
        "SC[3,3]-DP[50]-SC[6,3]-DP[50]-S[3]-FC[8]",
        "MC[8,3]-R[4]-D-MC[8,3]-OP[8]-S[1]",
        "LC[4,5]-GB[3]-D-GC[4,3]-MO[8]-S[0]",
    ],
)
def test_images_can_be_mapped_and_have_gradients_of_their_own(layers):
    net = TIGraNet(layers, 3, window="disc").double().eval()
    images = torch.rand(3, 1, 11, 11, dtype=torch.double)
    torch.testing.assert_close(torch.func.vmap(lambda image: net(image[None])[0])(images), net(images))

    def loss(parameters, image):
        return torch.func.functional_call(net, parameters, (image[None],)).square().sum()

    gradient = torch.func.grad(loss)
    parameters = {name: parameter.detach() for name, parameter in net.named_parameters()}
    mapped = torch.func.vmap(gradient, (None, 0))(parameters, images)
    for position, image in enumerate(images):
        expected = gradient(parameters, image)
        for name in parameters:
            torch.testing.assert_close(mapped[name][position], expected[name])


# Configuration, copies and compilation.


def test_the_architecture_may_be_a_parsed_value():
    architecture = Architecture.parse("SC[1,1]-S[1]")
    net = TIGraNet(architecture, num_classes=2)
    assert net.architecture is architecture
    assert net.config["architecture"] == "SC[1,1]-S[1]"
    assert "'SC[1,1]-S[1]', num_classes=2, in_maps=1, boundary='free'" in repr(net)


def test_the_configuration_holds_every_argument_in_order():
    arguments = {
        "architecture": "SC[1,1]-DP[9]-S[1]",
        "num_classes": 2,
        "in_maps": 3,
        "boundary": "torus",
        "neighbours": 4,
        "diagonal": 0.5,
        "ties": "strict",
        "init": "paper",
        "span": 1.5,
        "window": "disc",
        "margin": 4,
        "class_names": ("cat", "dog"),
        "image_size": 32,
    }
    config = TIGraNet(**arguments).config
    assert list(config.items()) == list((arguments | {"class_names": ["cat", "dog"]}).items())
    assert json.loads(json.dumps(config)) == config
    assert TIGraNet("paper", 2).config == {
        "architecture": str(Architecture.parse("paper")),
        "num_classes": 2,
        "in_maps": 1,
        "boundary": "free",
        "neighbours": 8,
        "diagonal": 1.0,
        "ties": "keep",
        "init": "default",
        "span": 2.0,
        "window": "none",
        "margin": 0,
        "class_names": None,
        "image_size": None,
    }


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ({"num_classes": 0}, ["num_classes", "at least 1", "got 0"]),
        ({"in_maps": 0}, ["in_maps", "at least 1", "got 0"]),
        ({"class_names": ["a", "b", "c"]}, ["one name per class", "3 names", "2 classes"]),
        ({"init": "xavier"}, ["init", "'default' or 'paper'", "'xavier'"]),
        ({"window": "square"}, ["window", "'none' or 'disc'", "'square'"]),
        ({"margin": -1}, ["margin", "at least 0", "got -1"]),
        ({"ties": "drop"}, ["ties", "'keep' or 'strict'", "'drop'"]),
        ({"boundary": "wrap"}, ["boundary", "'free' or 'torus'", "'wrap'"]),
        ({"neighbours": 6}, ["neighbours", "4 or 8", "6"]),
        ({"diagonal": -1.0}, ["diagonal", "positive", "-1.0", "neighbours=4"]),
    ],
)
def test_invalid_arguments_are_rejected_by_name(arguments, values, without_shape_checks):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, values))):
        TIGraNet("SC[1,1]-S[1]", **({"num_classes": 2} | arguments))


@pytest.mark.parametrize(
    ("images", "error", "values"),
    [
        (torch.rand(1, 8, 8), ValueError, ["(batch, 1, height, width)", "(1, 8, 8)"]),
        (torch.rand(2, 3, 8, 8), ValueError, ["(batch, 1, height, width)", "(2, 3, 8, 8)"]),
        (torch.rand(1, 1, 1, 1), ValueError, ["2 pixels", "1 x 1"]),
        (torch.zeros(1, 1, 8, 8, dtype=torch.uint8), TypeError, ["[0, 1]", "torch.uint8", ".float() / 255"]),
        (torch.rand(1, 1, 8, 8).double(), TypeError, ["torch.float32", "torch.float64", "convert"]),
    ],
)
def test_invalid_images_are_rejected_with_their_shape_or_type(images, error, values, without_shape_checks):
    with pytest.raises(error, match=".*".join(map(re.escape, values))):
        TIGraNet("SC[1,1]-S[1]", num_classes=2)(images)


def test_signals_on_a_graph_have_three_axes(without_shape_checks):
    with pytest.raises(ValueError, match=r"\(batch, 1, nodes\).*\(1, 1, 4, 4\)"):
        TIGraNet("SC[1,1]-S[1]", num_classes=2)(torch.rand(1, 1, 4, 4), GridLaplacian(4, 4))


def test_the_state_dict_holds_only_learned_numbers():
    net = TIGraNet("paper-small", num_classes=3)
    names = set(net.state_dict())
    net(torch.rand(2, 1, 28, 28))
    assert set(net.state_dict()) == names
    assert names == {name for name, _ in net.named_parameters()} | {
        f"standardise.{name}" for name in ("mean", "variance", "batches")
    }


def through_torch_save(net, folder):
    torch.save(net, folder / "net.pt")
    return torch.load(folder / "net.pt", weights_only=False)


@pytest.mark.parametrize(
    "duplicate",
    [
        lambda net, _: copy.deepcopy(net),
        lambda net, _: pickle.loads(pickle.dumps(net)),
        through_torch_save,
    ],
    ids=["deepcopy", "pickle", "torch.save"],
)
def test_a_copy_gives_the_same_logits_and_has_a_grid_cache_of_its_own(duplicate, trained, tmp_path):
    images = torch.rand(2, 1, 28, 28)
    logits = trained(images)
    other = duplicate(trained, tmp_path)
    assert other._grids is not trained._grids
    assert other._grids.sizes == []
    assert torch.equal(other(images), logits)
    assert other.config == trained.config


COMPILED = """
import sys
import torch
import torch._inductor.config
from tigranet import TIGraNet

torch._inductor.config.cpp.vec_isa_ok = False  # trying all instruction sets of the processor takes 11 seconds

torch.manual_seed(0)
net = TIGraNet(sys.argv[2], num_classes=3).eval()
images = torch.rand(3, 1, 12, 11)
images[1, :, 4:] = 0
compiled = torch.compile(net, fullgraph=True, backend=sys.argv[1])
with torch.inference_mode():
    compiled_logits = compiled(images)  # the compiler builds the grid of a new size while it traces
assert net._grids.sizes == [], net._grids.sizes
logits = net(images)
torch.testing.assert_close(compiled_logits, logits, rtol=1e-4, atol=1e-4)
actual = torch.autograd.grad(compiled(images).square().mean(), net.parameters())
expected = torch.autograd.grad(logits.square().mean(), net.parameters())
for a, b in zip(actual, expected, strict=True):
    torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4 * float(b.abs().max()))
other_size = torch.rand(2, 1, 9, 14)
with torch.inference_mode():
    torch.testing.assert_close(compiled(other_size), net(other_size), rtol=1e-4, atol=1e-4)
"""


@pytest.mark.parametrize(
    ("architecture", "backend"),
    [
        ("SC[2,2]-DP[60]-SC[3,2]-DP[30]-S[4]-FC[8]", "inductor"),
        ("MC[2,1]-OP[1]-MC[2,1]-OP[1,1]-S[1]", "aot_eager"),  # Inductor needs minutes to compile its C++ code
    ],
)
def test_the_compiled_network_gives_the_same_logits_and_gradients(architecture, backend, warm_process):
    """Runs in a process of its own without type checks. Inductor needs a C++ compiler."""
    if not (shutil.which("g++") or shutil.which("clang++")):
        backend = "aot_eager"
    result = warm_process.run(COMPILED, backend, architecture)
    assert result.returncode == 0, result.stderr


def test_classes_of_the_same_name_keep_their_answers():
    """The logit of a class depends on its own row of the last layer and on the layers before it, which are copied."""
    images = torch.rand(4, 1, 12, 12)
    net = TIGraNet("SC[2,2]-S[2]-FC[5]", 3, class_names=["a", "b", "c"])
    net(images)  # estimates the moments
    net.eval()
    before = torch.get_rng_state()
    other = net.with_classes(4, ["d", "c", "a", "e"])
    assert not torch.equal(torch.get_rng_state(), before)  # rows of new classes are drawn as for a new network
    torch.testing.assert_close(other(images)[:, [1, 2]], net(images)[:, [2, 0]])
    assert (other.num_classes, other.class_names, other.training) == (4, ("d", "c", "a", "e"), False)
    assert other.config | {"num_classes": 3, "class_names": ["a", "b", "c"]} == net.config
    with torch.no_grad():
        next(other.parameters()).zero_()
    assert next(net.parameters()).abs().sum() > 0  # the copy shares no memory


def test_numbers_are_no_names():
    """Networks without class names show the numbers 0, 1, ... as names, which do not stand for the same classes."""
    net = TIGraNet("SC[2,2]-S[2]", 2)
    named = net.with_classes(2, ["0", "1"])
    assert not torch.equal(named.classifier[-1].weight, net.classifier[-1].weight)
    assert net.double().with_classes(3).classifier[-1].weight.dtype == torch.float64


@pytest.mark.parametrize("names", [["a", "a"], ["a"], ["a", "b", "c"]])
def test_with_classes_checks_the_names(names):
    with pytest.raises(ValueError, match="name"):
        TIGraNet("SC[2,2]-S[2]", 2, class_names=["a", "b"]).with_classes(2, names)
