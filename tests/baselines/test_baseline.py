"""Properties that all baselines share. Each is compared with an independent computation of its logits."""

import pytest
import torch
import torch.nn.functional as F

from calibration import calibrate
from tigranet.baselines import STN, ConvNet, GroupCNN, HarmNet, ResNet
from tigranet.baselines.baseline import parameter_count
from tigranet.baselines.group_cnn import rotated_discs
from tigranet.baselines.harmnet import MODULUS_EPSILON, harmonic_rings
from tigranet.evaluation.accuracy import accuracy
from tigranet.training import Recipe, fit

BUILDERS = {
    "ConvNet": lambda classes, size, maps: ConvNet("C[3]-P[2]-C[4]-FC[5]", classes, size, maps),
    "ConvNet with GAP": lambda classes, size, maps: ConvNet("C[8]-P[2]-C[16]-GAP[1]-FC[9]", classes, size, maps),
    "STN": lambda classes, size, maps: STN("C[3]-ST[6]-C[4]-FC[5]", classes, size, maps),
    "HarmNet": lambda classes, size, maps: HarmNet(f"HRC[{maps},3]-HCN[3]-HRC[3,3]-HRC[3,4]", classes, size, maps),
    "GroupCNN": lambda classes, size, maps: GroupCNN("LC[4,3]-P[2]-GC[4]-FC[5]", classes, size, maps),
    "ResNet": lambda classes, size, maps: ResNet("RB[8,1]-RB[12,2]-FC[9]", classes, size, maps),
}


@pytest.fixture(params=BUILDERS)
def build(request):
    return BUILDERS[request.param]


# Logits by an independent computation


def perceptron(features, first, last):
    return (features @ first.weight.T + first.bias).clamp(min=0) @ last.weight.T + last.bias


def squares(maps):
    """The 2x2 squares of maps, as two more dimensions."""
    return maps.unfold(2, 2, 2).unfold(3, 2, 2)


def convnet_logits(net, images):
    first, second = net.filters[0], net.filters[3]
    maps = squares(F.conv2d(images, first.weight, first.bias).clamp(min=0)).amax((-2, -1))
    maps = F.conv2d(maps, second.weight, second.bias).clamp(min=0)
    return perceptron(maps.flatten(1), net.classifier[0], net.classifier[2])


def convnet_with_gap_logits(net, images):
    first, second = net.filters[0], net.filters[3]
    maps = squares(F.conv2d(images, first.weight, first.bias).clamp(min=0)).amax((-2, -1))
    maps = F.conv2d(maps, second.weight, second.bias).clamp(min=0)
    return perceptron(maps.mean((2, 3)), net.classifier[0], net.classifier[2])


def stn_logits(net, images):
    first, transformer, second = net.filters[0], net.filters[2], net.filters[3]
    maps = F.conv2d(images, first.weight, first.bias).clamp(min=0)
    _, _, hidden, _, last = transformer.localise
    theta = perceptron(F.adaptive_avg_pool2d(maps, 4).flatten(1), hidden, last).reshape(-1, 2, 3)
    height, width = maps.shape[2:]
    y, x = (((2 * torch.arange(side // 2) + 1) / (side // 2) - 1) for side in (height, width))
    y, x = torch.meshgrid(y, x, indexing="ij")
    x, y = torch.einsum("b a c, c i j -> a b i j", theta, torch.stack([x, y, torch.ones_like(x)]))
    column, row = ((x + 1) * width - 1) / 2, ((y + 1) * height - 1) / 2
    row_weight = (1 - (row[..., None] - torch.arange(height)).abs()).clamp(min=0)  # tents: bilinear, zeros outside
    column_weight = (1 - (column[..., None] - torch.arange(width)).abs()).clamp(min=0)
    maps = torch.einsum("b m r c, b i j r, b i j c -> b m i j", maps, row_weight, column_weight)
    maps = F.conv2d(maps, second.weight, second.bias).clamp(min=0)
    return perceptron(maps.flatten(1), net.classifier[0], net.classifier[2])


def batch_norm(values, norm, shape):
    mean, variance, weight, bias = (
        t.reshape(shape) for t in (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    )
    return (values - mean) / (variance + norm.eps).sqrt() * weight + bias


def harmnet_logits(net, images):
    """In complex numbers: (batch, order, map, height, width)."""
    rings = torch.complex(*harmonic_rings().unbind(2))

    def convolve(conv, z):
        orders = range(z.shape[1])
        outputs = []
        for p in range(2):
            profiles = [conv.radial[p, q] * torch.exp(1j * conv.beta[p, q])[..., None] for q in orders]
            filters = [torch.einsum("o i r, r y x -> o i y x", profiles[q], rings[p - q + 1]) for q in orders]
            outputs.append(sum(F.conv2d(z[:, q], filters[q], padding=3) for q in orders))
        return torch.stack(outputs, 1)

    def modulus(z):
        return (z.real**2 + z.imag**2 + MODULUS_EPSILON).sqrt()

    def normalise(part, z):
        return z * batch_norm(modulus(z), part.norm, (2, -1, 1, 1)).clamp(min=0) / modulus(z)

    first, nonlinearity, second, norm, _, third, last_norm = net.filters
    z = convolve(first, images[:, None].to(torch.complex64))
    z = z * (modulus(z) + nonlinearity.bias[:, None, None]).clamp(min=0) / modulus(z)
    z = normalise(norm, convolve(second, z))
    z = z.unflatten(4, (-1, 2)).unflatten(3, (-1, 2)).mean((4, 6))
    z = normalise(last_norm, convolve(third, z))
    to_classes, mean_modulus = net.classifier
    return modulus(convolve(to_classes, z)).mean((1, 3, 4)) + mean_modulus.bias


def group_cnn_logits(net, images):
    """With filters rotated by ``rot90``: maps are (batch, map, orientation, height, width)."""
    lifting, first_norm, _, group, second_norm, pool = net.filters
    disc = rotated_discs(4)[0]

    def filters(conv, orientation):
        return torch.einsum("o i p, p y x -> o i y x", conv.w[:, :, orientation], disc)

    maps = [F.conv2d(images, torch.rot90(filters(lifting, 0), k, (2, 3)), padding=3) for k in range(4)]
    maps = batch_norm(torch.stack(maps, 2), first_norm.norm, (-1, 1, 1, 1)).clamp(min=0)
    maps = maps.unflatten(4, (-1, 2)).unflatten(3, (-1, 2)).mean((4, 6))
    outputs = []
    for k in range(4):
        rotated = [torch.rot90(filters(group, (j - k) % 4), k, (2, 3)) for j in range(4)]
        outputs.append(sum(F.conv2d(maps[:, :, j], rotated[j], padding=3) for j in range(4)))
    maps = batch_norm(torch.stack(outputs, 2), second_norm.norm, (-1, 1, 1, 1)).clamp(min=0)
    features = pool.standardise(maps.amax(2).mean((2, 3)))
    return perceptron(features, net.classifier[0], net.classifier[2])


def resnet_logits(net, images):
    """With strides as every second pixel of a full convolution."""
    stem, norm, _, *blocks, _, _ = net.filters
    maps = batch_norm(F.conv2d(images, stem.weight, padding=1), norm, (-1, 1, 1)).clamp(min=0)
    for number, block in enumerate(blocks):
        first, first_norm, _, second, second_norm = block.branch
        step = 2 if number == 1 else 1
        branch = F.conv2d(maps, first.weight, padding=1)[..., ::step, ::step]
        branch = F.conv2d(batch_norm(branch, first_norm, (-1, 1, 1)).clamp(min=0), second.weight, padding=1)
        if number == 1:
            conv, shortcut_norm = block.shortcut
            weighted = torch.einsum("o i y x, b i h w -> b o h w", conv.weight, maps[..., ::step, ::step])
            maps = batch_norm(weighted, shortcut_norm, (-1, 1, 1))
        maps = (maps + batch_norm(branch, second_norm, (-1, 1, 1))).clamp(min=0)
    return perceptron(maps.mean((2, 3)), net.classifier[0], net.classifier[2])


REFERENCES = {
    "ConvNet": convnet_logits,
    "ConvNet with GAP": convnet_with_gap_logits,
    "STN": stn_logits,
    "HarmNet": harmnet_logits,
    "GroupCNN": group_cnn_logits,
    "ResNet": resnet_logits,
}


@pytest.mark.parametrize("name", BUILDERS)
@torch.no_grad()
def test_the_logits_equal_an_independent_computation(name):
    net = BUILDERS[name](5, 12, 2)
    if name == "STN":
        torch.nn.init.normal_(net.filters[2].localise[-1].weight, std=0.3)  # away from the identity
    calibrate(net, 12, in_maps=2)
    images = torch.rand(3, 2, 12, 12)
    logits = net(images)
    assert logits.std() > 1e-3
    torch.testing.assert_close(logits, REFERENCES[name](net, images), atol=2e-5, rtol=1e-4)


# Well-behaved modules


@pytest.mark.parametrize("size", [10, (11, 14), 28])
@pytest.mark.parametrize("maps", [1, 3])
def test_the_image_size_is_a_constructor_argument(build, size, maps):
    height, width = (size, size) if isinstance(size, int) else size
    net = build(5, size, maps)
    assert net(torch.rand(2, maps, height, width)).shape == (2, 5)
    assert net.input_shape == (maps, height, width)
    for text in (str(net.architecture), "num_classes=5", f"({maps}, {height}, {width})"):
        assert text in net.extra_repr()


def test_the_parsed_architecture_builds_an_equal_network(build):
    net = build(3, 12, 1)
    rebuilt = type(net)(net.architecture, 3, 12)
    rebuilt.load_state_dict(net.state_dict())
    images = torch.rand(2, 1, 12, 12)
    assert torch.equal(net.eval()(images), rebuilt.eval()(images))


def test_logits_of_an_image_do_not_depend_on_the_rest_of_the_batch(build):
    net, images = build(3, 12, 1).eval(), torch.rand(4, 1, 12, 12)
    torch.testing.assert_close(net(images), torch.cat([net(image[None]) for image in images]))
    assert not torch.allclose(net(images[:1]), net(images[1:2]), atol=1e-6)


def test_a_batch_of_one_image_gives_finite_gradients(build):
    net = build(3, 12, 1).train()
    logits = net(torch.rand(1, 1, 12, 12))
    F.cross_entropy(logits, torch.tensor([1])).backward()
    gradients = [parameter.grad for parameter in net.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
    assert gradients[-1].any()


def test_dropout_lies_before_the_classifier_and_is_off_by_default(build):
    net, images = build(3, 12, 1).eval(), torch.rand(2, 1, 12, 12)
    assert net.dropout.p == 0
    features = net.filters(images)
    net.dropout.p = 1.0
    assert torch.equal(net(images), net.classifier(features))
    net.dropout.train()
    assert torch.equal(net(images), net.classifier(torch.zeros_like(features)))


def test_double_precision_gives_the_same_logits(build):
    net, images = build(3, 12, 1).eval(), torch.rand(2, 1, 12, 12)
    logits = net.double()(images.double())
    assert logits.dtype == torch.float64
    torch.testing.assert_close(logits.float(), net.float()(images), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("classes", "maps", "size"), [(0, 1, (12, 12)), (3, 0, (12, 12)), (3, 1, (12, 0))])
def test_numbers_below_1_are_rejected(classes, maps, size):
    numbers = f"{classes}, {maps}, {size[0]} and {size[1]}"
    with pytest.raises(ValueError, match=f"at least 1.*{numbers}"):
        ConvNet("C[3]-FC[5]", classes, size, maps)


def test_no_classes_are_rejected_by_every_baseline(build):
    with pytest.raises(ValueError, match=r"num_classes.*at least 1.*0, 1, 12 and 12"):
        build(0, 12, 1)


@pytest.mark.parametrize("shape", [(2, 1, 10, 10), (2, 3, 12, 12), (1, 12, 12)])
def test_images_of_another_shape_are_rejected(build, without_shape_checks, shape):
    with pytest.raises(ValueError, match=r"\(batch, 1, 12, 12\)") as error:
        build(3, 12, 1)(torch.rand(shape))
    assert str(shape) in str(error.value)


def test_it_learns_with_the_training_code_of_tigranet(build, mnist_012):
    net = build(3, 28, 1)
    fit(net, mnist_012.train, None, Recipe(epochs=6))
    assert accuracy(net, mnist_012.train) > 50  # chance level: 33 %


def test_parameters_are_counted():
    assert parameter_count(torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.Linear(4, 5))) == 57 + 25
