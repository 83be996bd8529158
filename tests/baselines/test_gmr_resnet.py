"""The package GMR-Conv is not needed here: small modules of the same names take its place."""

import re
import sys

import pytest
import torch

from tigranet.baselines import GMRArchitecture, GMRResNet
from tigranet.baselines.gmr_resnet import NETWORKS, MissingPackageError

NETWORK = """
from torch import nn

class Convolution(nn.Identity):
    dw_fwd = inference_accelerate = True

class Network(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options
        self.layer1 = nn.Sequential(Convolution())
        self.fc = nn.Linear(options["in_channels"], options["num_classes"])

    def forward(self, images):
        return self.fc(self.layer1(images).mean((2, 3)))

gmr_resnet18 = Network
"""


def forget_package():
    for name in [name for name in sys.modules if name.split(".")[0] == "GMR_Conv"]:
        del sys.modules[name]


@pytest.fixture(params=["", "import a_package_that_is_not_installed"], ids=["complete", "without its transforms"])
def package(request, tmp_path, monkeypatch):
    """A package whose other modules may need further packages."""
    folder = tmp_path / "GMR_Conv"
    folder.mkdir()
    (folder / "__init__.py").write_text(f"from .gmr_resnet import gmr_resnet18\n{request.param}\n")
    (folder / "gmr_resnet.py").write_text(NETWORK)
    forget_package()
    monkeypatch.syspath_prepend(tmp_path)
    yield
    forget_package()


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("repetition", [1, 2])
def test_the_network_of_the_package_is_built_for_the_images(repetition):
    net = GMRResNet("gmr-resnet18", num_classes=5, image_size=(8, 9), in_maps=3)
    assert net.filters[0].options == {
        "num_classes": 5, "in_channels": 3, "gmr_conv_size": [9, 9, 5, 5], "skip_first_maxpool": False,
    }  # fmt: skip
    images = torch.rand(2, 3, 8, 9)
    expected = images.mean((2, 3)) @ net.classifier[0].weight.T + net.classifier[0].bias
    torch.testing.assert_close(net(images), expected)
    with pytest.raises(ValueError, match=r"3, 8, 9.*\(2, 3, 8, 8\)"):
        net(torch.rand(2, 3, 8, 8))


@pytest.mark.usefixtures("package")
def test_filters_and_pooling_can_be_chosen():
    options = GMRResNet("GMR[3]-GMR[5]-GMR[3]-GMR[7]", 5, 8, pooling=False).filters[0].options
    assert (options["gmr_conv_size"], options["skip_first_maxpool"]) == ([3, 5, 3, 7], True)


@pytest.mark.usefixtures("package")
def test_convolutions_use_whole_filters():
    layer = GMRResNet("gmr-resnet18", 5, 8).filters[0].layer1[0]
    assert (layer.dw_fwd, layer.inference_accelerate) == (False, False)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, NETWORKS, raising=False)
    monkeypatch.setitem(sys.modules, "GMR_Conv", None)
    with pytest.raises(MissingPackageError, match=r"pip install .*GMR-Conv"):
        GMRResNet("gmr-resnet18", 5, 8)


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("GMR[3]-GMR[3]-GMR[3]", ["4 stages", "got 3", "'GMR[3]-GMR[3]-GMR[3]'"]),
        ("GMR[4]-GMR[3]-GMR[3]-GMR[3]", ["odd", "4", "layer 1"]),
        ("resnet18", ["'resnet18'", "gmr-resnet18"]),
    ],
)
def test_parse_errors_name_the_layer_and_the_architecture(text, fragments):
    with pytest.raises(ValueError, match=re.escape(fragments[0])) as error:
        GMRArchitecture.parse(text)
    for fragment in fragments:
        assert fragment in str(error.value)
