"""The whole ``paper`` network at 26 x 26 and its peers: one image, 100 images; a training step; an epoch on a GPU."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.peers import ChebConvLaplacian, scattering_network
from benchmarks.timing import DEVICE, Row, compare, once, without_gradients
from tigranet import TIGraNet
from tigranet.baselines import ConvNet
from tigranet.data.transforms import jitter
from tigranet.kernels import using


def measure() -> list[Row]:
    torch.manual_seed(0)
    net = TIGraNet("paper", num_classes=9).to(DEVICE)
    images = torch.rand(100, 1, 26, 26, device=DEVICE)
    labels = torch.arange(100, device=DEVICE) % 9
    optimizer = torch.optim.Adam(net.parameters(), fused=True, capturable=DEVICE.type == "cuda")

    def answer(mode, images):
        with using(mode), torch.no_grad():
            return net(images)

    def step(mode):
        with using(mode):
            optimizer.zero_grad()
            F.cross_entropy(net(images), labels).backward()
            optimizer.step()

    modes = ("fused", "plain")
    net.eval()
    others = _peers(net)
    rows = []
    for work, some, rounds in (("network, one image", images[:1], 51), ("network, 100 images", images, 9)):
        candidates = {mode: partial(answer, mode, some) for mode in modes}
        candidates |= {name: without_gradients(partial(other, some)) for name, other in others.items()}
        rows += compare(work, 26, candidates, rounds=rounds)
    net.train()
    rows += compare("network, training step of 100", 26, {mode: partial(step, mode) for mode in modes})
    if DEVICE.type == "cuda":
        rows += [epoch()]
    return rows


def _peers(net: TIGraNet) -> dict[str, Callable[[Tensor], Tensor]]:
    """The same network on ChebConv's propagation, the paper's ConvNet, and kymatio's scattering below a classifier."""
    graph = ChebConvLaplacian(26, DEVICE)

    def by_cheb_conv(images: Tensor) -> Tensor:
        with using("plain"):
            return net(images.flatten(2), graph)

    torch.testing.assert_close(by_cheb_conv(image := torch.rand(1, 1, 26, 26, device=DEVICE)), net(image))
    peers = {"ChebConv": by_cheb_conv, "ConvNet": ConvNet("paper", num_classes=9, image_size=26).to(DEVICE).eval()}
    if (scattering := scattering_network(26, (500, 300, 100), 9, DEVICE)) is not None:
        peers["kymatio"] = scattering.eval()
    return peers


def epoch(images: int = 50_000, batch: int = 250) -> Row:
    """Shuffling, jitter, forward, backward and Adam over all images, which lie on the GPU; a step is one CUDA graph."""
    net = TIGraNet("paper", num_classes=9).to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters(), fused=True, capturable=True)
    x, y = torch.rand(images, 1, 26, 26, device=DEVICE), torch.randint(0, 9, (images,), device=DEVICE)
    indices = torch.arange(batch, device=DEVICE)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(jitter(x[indices], 0.5)), y[indices]).backward()
        optimizer.step()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        step()

    def run():
        for chosen in torch.randperm(images, device=DEVICE).split(batch):
            indices.copy_(chosen)
            graph.replay()

    run()
    seconds = sorted(once(run) for _ in range(3))
    print(f"an epoch of {images} images, batch {batch}: {seconds[1]:.3f} s", flush=True)
    return Row("network, epoch of 50,000", 26, "fused", 1e3 * seconds[1], 1e3 * seconds[0], 1.0)
