"""Run commands on full and read-only disks and with few resources, and again without these conditions."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from torture.commands import CACHE, LARGE_TRAIN, PREDICT_CSV, PREDICT_PARQUET, REPORT, TRAIN, Command
from torture.comparison import differences, fingerprints
from torture.complete_files import incomplete_files, make_older, temporary_files
from torture.disks import CannotMountError, read_only, small_disk
from torture.process import Outcome
from torture.results import Observation, failure_problems, process_problems
from torture.workspace import Workspace

Expectation = Literal["succeeds", "fails", "either"]
"""How a command ends."""
Mount = Callable[[Workspace, Path], AbstractContextManager[None]]


@dataclass(frozen=True)
class Condition:
    """One command under one condition."""

    group: str
    """Kind of the condition, in the table."""
    name: str
    """The condition itself, in the table."""
    command: Command
    expectation: Expectation
    mount: Mount = field(default=lambda workspace, folder: nullcontext())
    """The file system that is mounted during the run."""
    limits: str = ""
    """Options of ``ulimit``."""
    environment: tuple[tuple[str, str], ...] = ()
    """Environment variables; ``{folder}`` in a value stands for the working folder."""
    repetition: Command | None = None
    """What runs without the condition, if it is not the same command, continued."""


def _full(part: str, free_kib: int) -> Mount:
    return lambda workspace, folder: small_disk(folder / part, free_kib)


def _read_only(part: str) -> Mount:
    return lambda workspace, folder: read_only(folder / part)


def _full_temporary_folder(workspace: Workspace, folder: Path) -> AbstractContextManager[None]:
    return small_disk(workspace.temporary_folder(folder), 0)


def _read_only_data(workspace: Workspace, folder: Path) -> AbstractContextManager[None]:
    return read_only(workspace.folder / "data")


HOME = (("HOME", "{folder}/home"), ("XDG_CACHE_HOME", ""), ("TIGRANET_CACHE", ""))
"""A home folder of its own, in which the cache is then."""
MEMORY: tuple[tuple[Command, float, Expectation], ...] = (
    (PREDICT_CSV, 0.6, "fails"),
    (PREDICT_CSV, 1.2, "succeeds"),
    (TRAIN, 1.2, "fails"),
    (TRAIN, 1.6, "succeeds"),
    (REPORT, 1.2, "fails"),
    (REPORT, 1.45, "succeeds"),
)
"""Limits of the address space in GB: below and a little above what each command needs."""
CONDITIONS = (
    *(
        Condition("full disk", f"train, {free} KiB free for the model", TRAIN, "fails", _full("model", free))
        for free in (0, 16, 40)
    ),
    Condition("full disk", "evaluate, cache, 0 KiB free", CACHE, "either", _full("cache", 0)),
    Condition("full disk", "train, temporary folder", TRAIN, "either", _full_temporary_folder),
    Condition("full disk", "predict --csv", PREDICT_CSV, "fails", _full("", 4)),
    Condition("full disk", "predict --parquet", PREDICT_PARQUET, "fails", _full("", 4)),
    Condition("full disk", "report, 0 KiB free", REPORT, "fails", _full("report", 0)),
    Condition("full disk", "report, 32 KiB free", REPORT, "fails", _full("report", 32)),
    Condition("full disk", "evaluate, cache, 64 KiB free", CACHE, "either", _full("cache", 64)),
    Condition("read-only", "train, output", TRAIN, "fails", _read_only("model")),
    Condition("read-only", "evaluate, cache", CACHE, "either", _read_only("cache")),
    Condition("read-only", "evaluate, home", CACHE, "succeeds", _read_only("home"), environment=HOME),
    Condition("read-only", "train, data", TRAIN, "succeeds", _read_only_data),
    Condition("read-only", "predict --csv, output", PREDICT_CSV, "fails", _read_only("")),
    Condition("read-only", "predict --parquet, output", PREDICT_PARQUET, "fails", _read_only("")),
    Condition("read-only", "predict --csv, cache", PREDICT_CSV, "succeeds", _read_only("cache")),
    Condition("read-only", "report, output", REPORT, "fails", _read_only("report")),
    Condition("file size, ulimit -f", "train, 8 KiB", TRAIN, "fails", limits="-f 16"),
    Condition("file size, ulimit -f", "predict --csv, 8 KiB", PREDICT_CSV, "fails", limits="-f 16"),
    Condition("file size, ulimit -f", "report, 8 KiB", REPORT, "fails", limits="-f 16"),
    Condition("open files, ulimit -n", "train, 64", TRAIN, "succeeds", limits="-n 64"),
    Condition("open files, ulimit -n", "predict --csv, 64", PREDICT_CSV, "succeeds", limits="-n 64"),
    Condition("open files, ulimit -n", "report, 64", REPORT, "succeeds", limits="-n 64"),
    Condition("open files, ulimit -n", "train, 8", TRAIN, "either", limits="-n 8"),
    Condition(
        "memory, ulimit -v",
        "train on large images, 1.8 GB",
        LARGE_TRAIN,
        "fails",
        limits="-v 1800000",
        repetition=TRAIN,
    ),
    *(
        Condition(
            "memory, ulimit -v",
            f"{command.name}, {size} GB",
            command,
            expectation,
            limits=f"-v {size * 1e6:.0f}",
            repetition=command,
        )
        for command, size, expectation in MEMORY
    ),
)
"""All conditions."""


def run_condition(workspace: Workspace, condition: Condition) -> list[Observation]:
    """Run a command under a condition, then run it again without the condition, and check everything.

    Args:
        workspace: The workspace.
        condition: The condition.

    Returns:
        One observation.
    """
    command = condition.command
    folder = workspace.working_folder(f"{condition.group} {condition.name}".replace("/", "-"), command)
    older = workspace.add_older_results(command, folder)
    observation = Observation(condition.group, condition.name, [])
    environment = {name: value.format(folder=folder) for name, value in condition.environment}
    try:
        with condition.mount(workspace, folder):
            outcome = workspace.start(command, folder, limits=condition.limits, environment=environment).finish()
    except CannotMountError as error:
        observation.not_run = str(error)
        return [observation]
    observation.outcomes.append(outcome)
    observation.problems += process_problems(outcome) + _problems_of_end(condition, outcome)
    observation.problems += incomplete_files(folder) or _lost_files(workspace, command, folder, older)
    leftovers = temporary_files(folder)
    if leftovers:
        observation.problems.append(f"temporary files stay: {', '.join(path.name for path in leftovers)}")
    make_older(leftovers)
    repetition = condition.repetition or command
    again = workspace.run(repetition, folder, resume=condition.repetition is None)
    observation.outcomes.append(again)
    observation.problems += process_problems(again)
    if again.code != 0:
        observation.problems.append(f"fails also without the condition, exit code {again.code}: {again.stderr[-600:]}")
    else:
        reference, result = workspace.references[repetition.name], fingerprints(folder)
        observation.problems += [
            f"{name} differs"
            for name in differences(reference, result)
            if name in reference or not name.startswith("cache/")  # images of another size are stored too
        ]
    shutil.rmtree(folder)
    return [observation]


def _problems_of_end(condition: Condition, outcome: Outcome) -> list[str]:
    is_success = outcome.code == 0
    if condition.expectation != "either" and is_success != (condition.expectation == "succeeds"):
        return [f"expected that it {condition.expectation}, got exit code {outcome.code}: {outcome.reason}"]
    return [] if is_success else failure_problems(outcome)


def _lost_files(workspace: Workspace, command: Command, folder: Path, older: dict[str, str]) -> list[str]:
    """Return the files of the earlier run that are gone without a complete new one in their place."""
    reference, content = workspace.references.get(command.name, {}), fingerprints(folder)
    return [
        f"{name} of the earlier run is lost"
        for name in older
        if name.startswith(command.final_files) and content.get(name) not in (older[name], reference.get(name))
    ]
