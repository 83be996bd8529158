"""``python -m explorations.train_oriented_fields``: train a network of oriented fields, and test it at many angles.

The network is measured on validation images: 5,000 training images of CIFAR-10, or 8,000 digits of rotMNIST. Training
takes a given time, along which the learning rate rises and falls, so that networks are compared at equal cost. The
weights that are measured are an exponential moving average.
"""

import argparse
import json
import math
import time
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from explorations.augmentation import Augmentation, rotate_all
from explorations.oriented_fields import FieldNet
from tigranet.data.augment.rigid import rotate
from tigranet.evaluation.provenance import machine, versions

CIFAR_MEAN, CIFAR_DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
CIFAR_IMAGES, CIFAR_VALIDATION = 45_000, 5_000
ROTMNIST_TRAIN, ROTMNIST_IMAGES = 12_000, 20_000
WARM_UP = 0.12
"""Part of the time in which the learning rate rises."""
ANGLES = range(0, 361, 10)


def load(name: str, folder: Path) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training images and labels, then validation images and labels."""
    generator = torch.Generator().manual_seed(0)
    if name == "cifar10":
        with np.load(folder / "cifar10.npz") as data:
            pixels, labels = data["x_train"][:CIFAR_IMAGES], data["y_train"][:CIFAR_IMAGES]
        mean, deviation = (torch.tensor(values).view(3, 1, 1) for values in (CIFAR_MEAN, CIFAR_DEVIATION))
        images = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255 - mean) / deviation
        order = torch.randperm(CIFAR_IMAGES, generator=generator)
        train, validation = order[CIFAR_VALIDATION:], order[:CIFAR_VALIDATION]
    else:
        with np.load(folder / "mnist.npz") as data:
            chosen = torch.randperm(60_000, generator=generator)[:ROTMNIST_IMAGES]
            pixels, labels = data["x_train"][chosen], data["y_train"][chosen]
        degrees = 360 * torch.rand(ROTMNIST_IMAGES, generator=generator)
        images = rotate(torch.from_numpy(pixels).float()[:, None], degrees).round().clamp(0, 255) / 255
        train, validation = torch.arange(ROTMNIST_IMAGES).split([ROTMNIST_TRAIN, ROTMNIST_IMAGES - ROTMNIST_TRAIN])
    targets = torch.from_numpy(labels.astype(np.int64))
    return images[train], targets[train], images[validation], targets[validation]


def accuracy(net: nn.Module, images: Tensor, labels: Tensor, degrees: float) -> float:
    """Return the accuracy on images rotated by an angle, in per cent."""
    correct = 0
    for batch, targets in zip(images.split(1000), labels.split(1000), strict=True):
        correct += int((net(rotate_all(batch, degrees) if degrees else batch).argmax(1) == targets).sum())
    return 100 * correct / len(labels)


def accuracies(net: nn.Module, images: Tensor, labels: Tensor, angles: Iterable[float]) -> dict[str, float]:
    """Return the accuracy at each angle."""
    net.eval()
    with torch.no_grad(), torch.autocast(images.device.type, torch.bfloat16):
        return {str(angle): accuracy(net, images, labels, angle) for angle in angles}


def train(net: nn.Module, images: Tensor, labels: Tensor, options: argparse.Namespace) -> tuple[nn.Module, int]:
    """Train for ``options.seconds``; return the averaged network and the number of steps."""
    augment = Augmentation(**{field.name: getattr(options, field.name) for field in fields(Augmentation)})
    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.999), use_buffers=True)
    groups = [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": options.weight_decay},
        {"params": [p for p in net.parameters() if p.ndim <= 1], "weight_decay": 0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=options.learning_rate)
    start, steps = time.perf_counter(), 0
    while (progress := (time.perf_counter() - start) / options.seconds) < 1:
        for batch in torch.randperm(len(images), device=images.device).split(options.batch_size)[:-1]:
            if steps % 20 == 0 and images.is_cuda:
                torch.cuda.synchronize()
            progress = min(1.0, (time.perf_counter() - start) / options.seconds)
            fall = 0.5 * (1 + math.cos(math.pi * (progress - WARM_UP) / (1 - WARM_UP)))
            for group in optimizer.param_groups:
                group["lr"] = options.learning_rate * (progress / WARM_UP if progress < WARM_UP else fall)
            with torch.autocast(images.device.type, torch.bfloat16):
                logits = net(augment(images[batch]))
                loss = F.cross_entropy(logits, labels[batch], label_smoothing=options.label_smoothing)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update_parameters(net)
            steps += 1
            if progress >= 1:
                break
        print(f"{100 * progress:.0f} %, step {steps}, loss {loss.item():.3f}", flush=True)
    return average, steps


def main() -> None:
    """Train, measure, print one line of JSON, and append it to a file where one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=("cifar10", "rotmnist"), default="cifar10")
    parser.add_argument("--data-dir", type=Path, required=True, help="Folder with cifar10.npz or mnist.npz.")
    parser.add_argument("--orientations", type=int, default=8)
    parser.add_argument("--widths", type=int, nargs="+", default=[12, 24, 48])
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--stem-size", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=370)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    for field in fields(Augmentation):
        name = f"--{field.name}"
        if isinstance(field.default, bool):
            parser.add_argument(name, action="store_true")
        else:
            parser.add_argument(name, type=type(field.default), default=field.default)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="Append the result to this file.")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    images, labels, validation, targets = (tensor.to(device) for tensor in load(options.data, options.data_dir))
    net = FieldNet(
        images.shape[1],
        10,
        options.orientations,
        tuple(options.widths),
        options.blocks,
        stem_size=options.stem_size,
    ).to(device)
    average, steps = train(net, images, labels, options)
    by_angle = accuracies(average, validation, targets, ANGLES)
    result = {
        "options": {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()},
        "parameters": sum(parameter.numel() for parameter in net.parameters()),
        "epochs": steps * options.batch_size / len(images),
        "by_angle": by_angle,
        "mean": sum(by_angle.values()) / len(by_angle),
        "versions": versions(),
        "machine": machine(),
    }
    print(json.dumps(result))
    if options.output:
        with options.output.open("a") as file:
            print(json.dumps(result), file=file)


if __name__ == "__main__":
    main()
