"""``tigranet data shard``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tigranet.cli.options import Json
from tigranet.cli.output import print_line, print_unreadable_files, progress_console
from tigranet.cli.train_options import Color, Group, Size


def shard(
    source: Annotated[
        Path,
        typer.Argument(
            help="A folder with one sub-folder per class, or a CSV file of paths and labels.", readable=False
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the shards to.")] = Path("shards"),
    size: Size = None,
    color: Color = None,
    group: Group = None,
    images_per_shard: Annotated[int, typer.Option(min=1, help="Number of images in a shard.")] = 4096,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes.", show_default="one per core")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write images to shards, for a training on more images than fit into memory.

    The same command continues after an interruption.
    """
    from tigranet.workflows.shard_images import write_shards

    console = progress_console()
    shards = write_shards(
        source,
        output,
        size=size,
        color=color,
        group=group,
        images_per_shard=images_per_shard,
        workers=workers,
        console=console,
    )
    print_unreadable_files(shards.unreadable_files, console)
    if as_json:
        unreadable = [{"path": str(path), "reason": reason} for path, reason in shards.unreadable_files]
        values = {
            "folder": str(shards.folder),
            "class_names": shards.class_names,
            "size": shards.size,
            "channels": shards.channels,
            "images": shards.images,
            "shards": shards.shards,
            "resumed_shards": shards.resumed_shards,
            "unreadable": unreadable,
            "seconds": round(shards.seconds, 1),
        }
        print(json.dumps(values))
        return
    kind = f"{shards.size}x{shards.size} pixels, {'grey' if shards.channels == 1 else f'{shards.channels} channels'}"
    classes = f"{len(shards.class_names)} classes"
    print_line(f"{shards.images:,} images of {classes} in {shards.shards} shards: {kind}; saved to {shards.folder}")
