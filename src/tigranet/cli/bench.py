"""``tigranet bench``."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from tigranet.cli.options import Json, global_options
from tigranet.cli.output import print_table, progress_console

DEFAULT_SIZE = 26
"""Side length of the images, in pixels, for a network that does not say; that of MNIST-rot."""


def bench(
    model: Annotated[
        str, typer.Argument(help="Folder of a saved model, a preset, or layers such as 'SC[3,3]-S[10]-FC[50]'.")
    ] = "paper",
    size: Annotated[
        int | None, typer.Option(min=2, help="Side length in pixels.", show_default="that of the model, or 26")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Batch size.")] = 100,
    as_json: Json = False,
) -> None:
    """Measure the speed on this machine: the fused kernels beside the plain version."""
    from tigranet.devices import select_device
    from tigranet.evaluation.provenance import machine
    from tigranet.evaluation.speed import measure_speed
    from tigranet.workflows.networks import load_network

    device = select_device(global_options().device)
    network = load_network(model).to(device)
    side = size or network.image_size or DEFAULT_SIZE
    with progress_console().status("measuring"):
        speeds = measure_speed(network, side, batch)
    where = machine()
    if as_json:
        about = {"architecture": str(network.architecture), "size": side, "machine": where}
        print(json.dumps(about | {"milliseconds": [asdict(speed) for speed in speeds]}))
        return
    hardware = f"{where['cpu']}, {where['threads']} threads" if device.type == "cpu" else where["gpu"] or device
    print(f"{network.architecture}\n{side} x {side} pixels, on {hardware}")
    table = Table("milliseconds", "fused", "plain", "times faster", "per image, fused", "plain")
    for speed in speeds:
        per_image = (f"{time / speed.images:.2f}" for time in (speed.fused, speed.plain))
        table.add_row(speed.work, f"{speed.fused:.2f}", f"{speed.plain:.2f}", f"{speed.times:.1f}", *per_image)
    print_table(table)
