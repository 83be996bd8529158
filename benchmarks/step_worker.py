"""The process that :mod:`benchmarks.matrix_products` starts for each network: trains with ``fit`` and prints JSON.

python -m benchmarks.step_worker products pyramid-small 64
python -m benchmarks.step_worker faults pyramid-small 64 kept
"""

import json
import os
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.ceilings import product_gflop_per_s
from benchmarks.resumed_table import provenance
from benchmarks.step_products import (
    Product,
    own_kernels_as_operators,
    profiled_products,
    seconds_alone,
    trace_products,
)
from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.freed_memory import USER_VARIABLES, keep_freed_memory
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.lightning_module import ClassifierModule

IMAGES, CLASSES = 500, 5
CPU = torch.device("cpu")
ROUNDS, STEPS = 6, 5
"""In each round the peak is measured, then some steps are timed, then as many steps are profiled."""
WARM_UP = 2
"""Number of rounds that are not counted. In these kernels are compiled, and the memory of the process still grows, also
because a profiler keeps what it records. The page faults of a result in new memory take as long as the product."""
EPOCHS = 3
"""Number of epochs whose page faults are counted. In the first one the memory of the process still grows."""
AUGMENTATION = "read_batch"
"""Name of the block in which a batch is read and augmented, in a profile."""
PEAK_SIDES = (1024, 2048, 3072)
LISTED = 8
"""Number of products that are listed, those that lose most time."""
KEPT, RETURNED = "kept", "returned"
"""What happens to freed memory: the library keeps it for the next batch, or glibc does as it does by default."""


class _Finished(Exception):
    """Ends a training."""


def train(preset: str, size: int, measurement: Iterator[None]) -> None:
    """Train a network with ``fit`` and the default recipe.

    Args:
        preset: The architecture.
        size: Side length of the images in pixels.
        measurement: It is continued at the beginning of each step, before the batch is read. The training ends when
            the measurement ends.
    """

    def continue_measurement(module: ClassifierModule, batch: Any, index: int) -> None:
        try:
            next(measurement)
        except StopIteration:
            raise _Finished from None

    torch.manual_seed(0)
    net = TIGraNet(preset, CLASSES)
    data = LabelledImages(torch.rand(IMAGES, 1, size, size), torch.arange(IMAGES) % CLASSES)
    # A profiler must begin and end outside the call of the optimiser, within which Lightning calls the network.
    with (
        suppress(_Finished),
        patch.object(ClassifierModule, "on_train_batch_start", continue_measurement),
        patch.object(ClassifierModule, "read_batch", record_function(AUGMENTATION)(ClassifierModule.read_batch)),
    ):
        fit(net, data, None, default_recipe(net), hardware=Hardware(accelerator="cpu"))
        raise RuntimeError(f"the training of {preset} ended before the measurement: it has too few steps")


def default_recipe(net: TIGraNet) -> Recipe:
    """Return the recipe of a user who names none."""
    return Recipe.for_network(net, IMAGES)


def measure_products(preset: str, size: int) -> dict[str, Any]:
    """Measure the matrix products of training steps.

    Args:
        preset: The architecture.
        size: Side length of the images in pixels.

    Returns:
        ``columns`` of the table, and ``listed``: rows of single products.
    """
    peaks: list[float] = []
    steps: list[float] = []
    profiled_steps: list[float] = []
    profiles: list[list[tuple[Product, float]]] = []
    augmented_profiles: list[list[tuple[Product, float]]] = []
    traced: list[Product] = []

    def measurement() -> Iterator[None]:
        for number in range(ROUNDS):
            if number == WARM_UP:
                for values in (peaks, steps, profiled_steps, profiles, augmented_profiles):
                    values.clear()
            peaks.extend(product_gflop_per_s(side, CPU, calls=5) for side in PEAK_SIDES)
            for _ in range(STEPS):
                start = time.perf_counter()
                yield
                steps.append(time.perf_counter() - start)
            for _ in range(STEPS):
                with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
                    start = time.perf_counter()
                    yield
                    profiled_steps.append(time.perf_counter() - start)
                profiles.append(profiled_products(profiler.events(), without=AUGMENTATION))
                augmented_profiles.append(profiled_products(profiler.events()))
        with trace_products(without=AUGMENTATION) as products:
            yield
        traced.extend(products)

    with own_kernels_as_operators():
        train(preset, size, measurement())
    with keep_freed_memory():
        alone = seconds_alone(traced)
    peak, flop = max(peaks), sum(product.flop for product in traced)
    if any(sum(product.flop for product, _ in products) != flop for products in profiles):
        raise RuntimeError(f"expected the same products in all steps of {preset}")
    seconds = median(map(_sum_of_seconds, profiles))
    rates = {
        "in_step": flop / seconds / 1e9,
        "alone": flop / sum(alone[product] for product in traced) / 1e9,
        "with_augmentation": median(map(_gflop_per_s, augmented_profiles)),
    }
    columns = {
        "batch": default_recipe(TIGraNet(preset, CLASSES)).batch_size,
        "step_ms": round(1e3 * median(steps), 1),
        "profiled_step_ms": round(1e3 * median(profiled_steps), 1),
        "products": len(traced),
        "products_gflop": round(flop / 1e9, 3),
        "products_ms": round(1e3 * seconds, 2),
        "share_of_step": round(seconds / median(profiled_steps), 3),
        "peak_gflop_per_s": round(peak, 1),
        **{f"{name}_gflop_per_s": round(rate, 1) for name, rate in rates.items()},
        **{f"{name}_share_of_peak": round(rate / peak, 3) for name, rate in rates.items()},
    }
    return {"columns": columns | provenance(), "listed": list_products(profiles, traced, alone, peak)}


def _sum_of_seconds(products: list[tuple[Product, float]]) -> float:
    return sum(seconds for _, seconds in products)


def _gflop_per_s(products: list[tuple[Product, float]]) -> float:
    return sum(product.flop for product, _ in products) / _sum_of_seconds(products) / 1e9


def list_products(
    profiles: list[list[tuple[Product, float]]], traced: list[Product], alone: dict[Product, float], peak: float
) -> list[str]:
    """Describe the products that take most time beyond that of the peak.

    Args:
        profiles: The products of each profiled step, with their seconds.
        traced: The products of one step, with strides.
        alone: The seconds of each of these alone.
        peak: The GFLOP/s of a large product.

    Returns:
        One line for each kind of product, of an operator with certain shapes.
    """
    in_steps: dict[Product, list[float]] = defaultdict(list)
    for products in profiles:
        for product, seconds in products:
            in_steps[product].append(seconds)
    calls = Counter(product._replace(strides=()) for product in traced)
    alone_seconds: dict[Product, float] = defaultdict(float)
    for product in traced:
        alone_seconds[product._replace(strides=())] += alone[product]
    lines = []
    for product, count in calls.items():
        seconds = median(in_steps[product])
        gflop_alone = count * product.flop / alone_seconds[product] / 1e9
        lost = count * (seconds - product.flop / peak / 1e9)
        shapes = " ".join("x".join(map(str, shape)) for shape in product.shapes)
        lines.append(
            (
                lost,
                f"{count:3} {product.operator.split('::')[1]:8} {shapes:40} {1e3 * count * seconds:8.2f} ms, "
                f"GFLOP/s {product.flop / seconds / 1e9:6.1f} in the step, {gflop_alone:6.1f} alone",
            )
        )
    return [line for _, line in sorted(lines, reverse=True)[:LISTED]]


def count_faults(preset: str, size: int, memory: str) -> tuple[float, float]:
    """Count the page faults of a training.

    Args:
        preset: The architecture.
        size: Side length of the images in pixels.
        memory: :data:`KEPT` or :data:`RETURNED`.

    Returns:
        The page faults per training image, in the first epoch and in the later ones.
    """
    if memory == RETURNED:
        # The library leaves the memory to a user who has set this. glibc has read it before, and does not see it.
        os.environ[USER_VARIABLES[0]] = ""
    faults: list[int] = []

    def measurement() -> Iterator[None]:
        for _ in range(EPOCHS):
            faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
            for _ in range(-(-IMAGES // default_recipe(TIGraNet(preset, CLASSES)).batch_size)):
                yield
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)

    train(preset, size, measurement())
    return (faults[1] - faults[0]) / IMAGES, (faults[-1] - faults[1]) / IMAGES / (EPOCHS - 1)


def main() -> None:
    """Measure what the arguments name, and print it."""
    kind, preset, size, *memory = sys.argv[1:]
    result = measure_products(preset, int(size)) if kind == "products" else count_faults(preset, int(size), *memory)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
