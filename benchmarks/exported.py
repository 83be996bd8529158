"""Benchmark of exported networks in onnxruntime beside the fused kernels: ``python -m benchmarks.exported``."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.timing import Row, compare
from tigranet import TIGraNet
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx
from tigranet.ops import using

CASES = ("oriented", 28), ("oriented", 64), ("paper", 28), ("pyramid-small", 64)
"""Networks, and side lengths of the images."""


def measure(batch: int = 16) -> Iterator[Row]:
    """Time one image and a batch, with as many threads as PyTorch uses."""
    for preset, size in CASES:
        yield from time_exported(preset, size, batch)


def time_exported(preset: str, size: int, batch: int) -> Iterator[Row]:
    """Time one image and a batch of one network: the fused kernels, plain PyTorch, and onnxruntime."""
    import onnxruntime

    torch.manual_seed(0)
    net = TIGraNet(preset, num_classes=9)
    with torch.no_grad():
        net(torch.rand(8, 1, size, size))  # estimates the moments of the maps
    net.eval()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    model = build_onnx(model_interface(net)).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def predict(mode: str, images: Tensor) -> Tensor:
        with using(mode), torch.inference_mode():
            return net(images)

    images = torch.rand(batch, 1, size, size)
    for work, inputs, rounds in (("one image", images[:1], 51), (f"{batch} images", images, 9)):
        candidates = {mode: partial(predict, mode, inputs) for mode in ("fused", "plain")}
        candidates["onnxruntime"] = partial(session.run, None, {"images": inputs.numpy()})
        yield from compare(f"{preset} exported, {work}", size, candidates, rounds=rounds)


if __name__ == "__main__":
    list(measure())
