"""Write the images of a folder or a table to shards, from which a network can be trained without holding them."""

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tigranet.abandoned_files import STAGING_PREFIX
from tigranet.choose_architecture import default_size_limit
from tigranet.data import UnreadableFile
from tigranet.data.class_names import check_class_names
from tigranet.data.csv_index import index_csv
from tigranet.data.folder_index import index_folder
from tigranet.data.image_colors import files_have_colors
from tigranet.data.image_index import ImageIndex
from tigranet.data.letterbox import default_file_size
from tigranet.data.shards.shard_files import Manifest, ShardIndex, is_shard_folder, read_index
from tigranet.data.shards.shard_plan import PLAN, ShardPlan, make_plan, shard_images
from tigranet.data.shards.writer import write_shard
from tigranet.data.user_data import TABLE_SUFFIXES
from tigranet.devices import trains_on_cuda
from tigranet.usable_cores import usable_cores
from tigranet.workflows.exclusive_output import hold_folder
from tigranet.workflows.output_folder import check_apart_from_data, check_output_folder
from tigranet.workflows.shard_workers import run_workers

IMAGES_PER_SHARD = 4096
"""Number of images in a shard, unless the user says otherwise: some seconds of work for a core."""


@dataclass(frozen=True)
class Shards:
    """What was written, and where it is."""

    folder: Path
    """The folder of the shards."""
    class_names: tuple[str, ...]
    """Name of each class."""
    size: int
    """Height and width of the images in pixels."""
    channels: int
    """Number of channels."""
    images: int
    """Number of images in all shards."""
    shards: int
    """Number of shards."""
    resumed_shards: int
    """Number of shards that an earlier call had written."""
    unreadable_files: tuple[UnreadableFile, ...]
    """Files that could not be read, with the reasons. They are in no shard."""
    seconds: float
    """Duration of this call."""


def write_shards(
    source: str | Path,
    output: str | Path,
    *,
    size: int | None = None,
    color: bool | None = None,
    group: str | None = None,
    images_per_shard: int = IMAGES_PER_SHARD,
    workers: int | None = None,
    console: Console | None = None,
) -> Shards:
    """Decode the images of a folder or a table, and write them to shards.

    The images are prepared as for a training from the same source, bit for bit. A shard is written completely or not at
    all, and the same source and options always give the same bytes. After a kill, the same call continues with the
    shards that are missing.

    Worker processes import the main module of a program again. A script that calls this function with several workers
    therefore does so below ``if __name__ == "__main__":``.

    Args:
        source: A folder with one sub-folder per class, or a CSV file of paths and labels, as for
            :func:`tigranet.data.load_user_data`.
        output: The folder of the shards.
        size: Side length of the images in pixels; by default the median of their longer sides, up to the limit of
            :func:`tigranet.choose_architecture.default_size_limit`, as for a training on the images themselves.
        color: Keep all channels instead of the luminance. None keeps them if the images have colours.
        group: Which images stay together in one part, as for :func:`tigranet.data.load_user_data`.
        images_per_shard: Number of image files in a shard.
        workers: Number of processes. None uses one per core, and at most one per shard.
        console: Where to show progress.

    Returns:
        What was written.

    Raises:
        FileNotFoundError: If ``source`` does not exist.
        ValueError: If ``source`` is not a folder or table of labelled images, if it or the options have changed since
            ``output`` was begun, if no image can be read, or if images with different numbers of channels are mixed.
        RuntimeError: If a worker process dies.
        OSError: If ``output`` cannot be written, or if another process is writing to it.
    """
    start = perf_counter()
    source, folder = Path(source), Path(output)
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    check_output_folder(folder, "set of shards")
    check_apart_from_data(folder, source, "set of shards")
    index = _index(source, group)
    side = size or default_file_size(index.paths, default_size_limit(None, trains_on_cuda()))
    if color is None:
        color = files_have_colors(index.paths)
    plan = make_plan(source, index, size=side, color=color, group=group, images_per_shard=images_per_shard)
    with hold_folder(folder, "is writing shards to"):
        _delete_staged_files(folder)
        _check_folder(folder, plan)
        done = {number: shard for number in range(plan.shards) if (shard := read_index(folder, number, plan.checksum))}
        resumed = len(done)
        write = partial(write_shard, folder, plan=plan.checksum, size=side, color=color)
        pending = ((number, images) for number, images in shard_images(plan, source, index) if number not in done)
        count = min(workers or usable_cores(), plan.shards - resumed)
        with _Progress(plan, done, console) as progress:
            try:
                for finished in run_workers(write, pending, count, progress.step):
                    done[finished.summary.number] = finished._replace(names=())
                    progress.finish(finished)
            finally:
                _delete_staged_files(folder)
        manifest = _manifest(plan, index, [done[number] for number in range(plan.shards)])
        if not is_shard_folder(folder) or resumed < plan.shards:
            manifest.write(folder)
    return Shards(
        folder,
        manifest.class_names,
        side,
        manifest.channels,
        manifest.images,
        plan.shards,
        resumed,
        tuple(UnreadableFile(Path(path), reason) for path, reason in manifest.unreadable),
        perf_counter() - start,
    )


def _index(source: Path, group: str | None) -> ImageIndex:
    if not source.exists():
        raise FileNotFoundError(f"there is no file or folder '{source}'")
    if is_shard_folder(source):
        raise ValueError(f"'{source}' has shards already: give the folder or table of the image files")
    if source.is_dir():
        index = index_folder(source, group)
    elif source.suffix.lower() in TABLE_SUFFIXES:
        index = index_csv(source, group)
    else:
        raise ValueError(
            f"expected a folder with one sub-folder per class, or a table ({', '.join(TABLE_SUFFIXES)}), got '{source}'"
        )
    check_class_names(index.class_names, source)
    return index


def _check_folder(folder: Path, plan: ShardPlan) -> None:
    """Check that a folder is empty or has shards of this plan, and write the plan to an empty one."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    if PLAN in names:
        plan.check_stored(folder)
    elif names:
        raise ValueError(
            f"'{folder}' has other files, such as '{names[0]}': use a folder that is empty or does not exist"
        )
    else:
        plan.write(folder)


def _delete_staged_files(folder: Path) -> None:
    """Delete what workers that were ended have begun. Nobody else writes to the folder while it is held."""
    for path in folder.glob(f"{STAGING_PREFIX}*"):
        with suppress(OSError):
            path.unlink()


def _manifest(plan: ShardPlan, index: ImageIndex, shards: list[ShardIndex]) -> Manifest:
    """Describe the finished shards, and check that a data set can be made of them."""
    images = sum(shard.summary.images for shard in shards)
    unreadable = [(str(path), reason) for path, reason in index.skipped]
    unreadable += sorted(entry for shard in shards for entry in shard.unreadable)
    if not images:
        path, reason = unreadable[-1]
        raise ValueError(f"none of the {plan.images} images can be read; the last, '{path}': {reason}")
    channels = sorted({count for shard in shards for count in shard.summary.channels})
    if len(channels) > 1 and channels != [1, 3]:
        raise ValueError(
            f"expected the same number of channels in all images, or 1 and 3, got {', '.join(map(str, channels))}: "
            "use --grey, and write to another folder"
        )
    return Manifest(
        index.class_names,
        plan.size,
        channels[-1],
        index.groups is not None,
        index.repeated_rows,
        images,
        plan.checksum,
        tuple(shard.summary for shard in shards),
        tuple(unreadable),
    )


class _Progress:
    """A progress bar over the images, with the time that is left."""

    def __init__(self, plan: ShardPlan, done: dict[int, ShardIndex], console: Console | None) -> None:
        self.plan, self.console = plan, console
        self.before = sum(_files(shard) for shard in done.values())
        self.completed, self.in_shard = self.before, 0
        if console and done:
            console.print(f"{len(done)} of {plan.shards} shards were written before", soft_wrap=True)
        self.bar = Progress(
            TextColumn("{task.completed}/{task.total} images"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[unreadable]} unreadable "),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console or Console(quiet=True),
            transient=True,
        )
        self.unreadable = sum(len(shard.unreadable) for shard in done.values())

    def __enter__(self) -> "_Progress":
        self.task = self.bar.add_task("", total=self.plan.images, completed=self.completed, unreadable=self.unreadable)
        if self.console:
            self.bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.bar.stop()

    def step(self) -> None:
        """Count one file of the shard that this process writes."""
        self.in_shard += 1
        self.bar.update(self.task, completed=self.completed + self.in_shard)

    def finish(self, shard: ShardIndex) -> None:
        """Count the files of a shard that is finished.

        Args:
            shard: Its index.
        """
        self.completed += _files(shard)
        self.in_shard = 0
        self.unreadable += len(shard.unreadable)
        self.bar.update(self.task, completed=self.completed, unreadable=self.unreadable)


def _files(shard: ShardIndex) -> int:
    return shard.summary.images + len(shard.unreadable)
