import pytest
import torch

from tigranet.baselines import STN, ConvNet, GroupCNN, HarmNet
from tigranet.evaluation.accuracy import accuracy
from tigranet.training import Recipe, fit

SMALL = {
    "ConvNet": lambda classes, size, maps: ConvNet("C[3]-P[2]-C[4]-FC[5]", classes, size, maps),
    "ConvNet, averaged": lambda classes, size, maps: ConvNet("C[8]-P[2]-C[16]-GAP[1]-FC[9]", classes, size, maps),
    "STN": lambda classes, size, maps: STN("C[3]-ST[6]-C[4]-FC[5]", classes, size, maps),
    "HarmNet": lambda classes, size, maps: HarmNet(f"HRC[{maps},3]-HCN[3]-HRC[3,3]-HRC[3,4]", classes, size, maps),
    "GroupCNN": lambda classes, size, maps: GroupCNN("LC[4,3]-P[2]-GC[4]-FC[5]", classes, size, maps),
}


@pytest.fixture(params=SMALL)
def build(request):
    return SMALL[request.param]


@pytest.mark.parametrize("size", [10, (11, 14), 28])
@pytest.mark.parametrize("maps", [1, 3])
def test_any_size_is_given_at_construction(build, size, maps):
    height, width = (size, size) if isinstance(size, int) else size
    net = build(5, size, maps)
    assert net(torch.rand(2, maps, height, width)).shape == (2, 5)
    assert net.extra_repr() == f"'{net.architecture}', num_classes=5, reads=({maps}, {height}, {width})"


def test_its_architecture_builds_it_again(build):
    net = build(3, 12, 1)
    again = type(net)(net.architecture, 3, 12)
    again.load_state_dict(net.state_dict())
    images = torch.rand(2, 1, 12, 12)
    assert torch.equal(net.eval()(images), again.eval()(images))


def test_images_of_a_batch_do_not_mix(build):
    net, images = build(3, 12, 1).eval(), torch.rand(4, 1, 12, 12)
    torch.testing.assert_close(net(images), torch.cat([net(image[None]) for image in images]))


def test_a_batch_of_one_trains(build):
    build(3, 12, 1).train()(torch.rand(1, 1, 12, 12)).sum().backward()


def test_it_runs_in_double_precision(build):
    net, images = build(3, 12, 1).eval(), torch.rand(2, 1, 12, 12)
    torch.testing.assert_close(net.double()(images.double()).float(), net.float()(images), atol=1e-4, rtol=1e-4)


def test_wrong_sizes_are_named(build, as_a_user):
    with pytest.raises(ValueError, match="at least 1, got 0, 1, 12 and 12"):
        build(0, 12, 1)
    with pytest.raises(ValueError, match=r"reads \(batch, 1, 12, 12\), got shape \(2, 1, 10, 10\)"):
        build(3, 12, 1)(torch.rand(2, 1, 10, 10))


def test_it_is_trained_as_any_network_is(build, mnist_012):
    net = build(3, 28, 1)
    fit(net, mnist_012.train, None, Recipe(epochs=6))
    assert accuracy(net, mnist_012.train) > 50  # a third by chance
