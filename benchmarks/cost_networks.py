"""The networks whose cost :mod:`benchmarks.cost_by_size` measures, each as a function that builds it for one size."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.peers import ChebConvNetwork
from tigranet import TIGraNet
from tigranet.architecture import PRESETS, Architecture
from tigranet.baselines import ConvNet, ResNet
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx

CLASSES = 10
TRAINING, BATCH, ONE_IMAGE = "training", "inference", "inference of one image"
WORKS = (TRAINING, BATCH, ONE_IMAGE)


@dataclass(frozen=True)
class CostCandidate:
    """A network that is measured."""

    build: Callable[[int], nn.Module]
    """Builds the network on the CPU for images with this side length."""
    needs: str = ""
    """A package that has to be installed."""
    trains: bool = True
    """Whether it can be trained."""
    only_on: str = ""
    """The only type of device that it computes on, if not all."""
    capturable: bool = True
    """Whether a step can be recorded as a CUDA graph."""
    batch_share: float = 1.0
    """Number of images per step as a share of that of other networks, for networks that need very much memory."""

    def applies(self, work: str, precision: str, device: torch.device) -> bool:
        """Say whether a piece of work exists for this network.

        Args:
            work: One of :data:`WORKS`.
            precision: ``float32``, ``tf32`` or ``bf16``.
            device: Where to compute.

        Returns:
            True if it can be measured where the needed package is installed.
        """
        if work == TRAINING and not self.trains:
            return False
        return not self.only_on or (device.type == self.only_on and precision == "float32")


def tigranet_candidates() -> dict[str, CostCandidate]:
    """Return all presets."""
    return {preset: CostCandidate(lambda size, preset=preset: TIGraNet(preset, CLASSES)) for preset in PRESETS}


def candidates() -> dict[str, CostCandidate]:
    """Return all networks by name: our presets, the baselines, ChebConv, and two presets in onnxruntime."""
    return tigranet_candidates() | {
        "resnet18": CostCandidate(lambda size: ResNet("resnet18", CLASSES, size)),
        "small CNN": CostCandidate(lambda size: ConvNet("gap", CLASSES, size)),
        "ChebConv": CostCandidate(
            lambda size: ChebConvNetwork((16, 16, 32), 6, CLASSES, size),
            needs="torch_geometric",
            capturable=False,
            batch_share=1 / 16,
        ),
        **{
            f"{preset}, onnxruntime": CostCandidate(
                lambda size, preset=preset: OnnxNetwork(preset, size),
                needs="onnxruntime",
                trains=False,
                only_on="cpu",
            )
            for preset in ("oriented-small", "pyramid-small")
        },
    }


def find_candidate(name: str) -> CostCandidate:
    """Return a network by its name, or by its layers.

    Args:
        name: A name of :func:`candidates`, or layers such as ``LC[8,5]-D-GB[5]-MO[16]-S[0]``.

    Returns:
        The network.

    Raises:
        ValueError: If there is no such network.
    """
    known = candidates()
    if name in known:
        return known[name]
    Architecture.parse(name)
    return CostCandidate(lambda size: TIGraNet(name, CLASSES))


class OnnxNetwork(nn.Module):
    """A preset that is exported to ONNX and computed by onnxruntime, with as many threads as PyTorch uses.

    Args:
        preset: The preset.
        size: Side length of the images.
    """

    def __init__(self, preset: str, size: int) -> None:
        super().__init__()
        import onnxruntime

        net = TIGraNet(preset, CLASSES)
        with torch.no_grad():
            net(torch.rand(2, 1, size, size))  # estimates the moments of the maps
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        model = build_onnx(model_interface(net.eval())).SerializeToString()
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits."""
        return torch.from_numpy(self.session.run(None, {"images": images.numpy()})[0])
