"""Interrupt ``tigranet`` at random moments, run it under hard conditions, and check that nothing is lost.

    python -m torture --kills 100 --seed 0 --output results/torture.md

Exit code 1 if anything went wrong.
"""

import argparse
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from torture.commands import COMMANDS, TRAIN, TRAIN_ON_SHARDS
from torture.conditions import CONDITIONS, run_condition
from torture.kills import plan_rounds, run_round
from torture.page import render
from torture.pairs import PAIRS, run_pair
from torture.results import MAX_SECONDS, Observation, add_time_problems
from torture.table import problem_list
from torture.workspace import Workspace

Task = Callable[[], list[Observation]]
CHOICES = ("train", "shard", "predict", "report", "cache", "conditions", "pairs")


def main() -> None:
    """Run everything, print the tables and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="number of signals")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments")
    parser.add_argument("--only", choices=CHOICES, action="append", help="part to run; all by default")
    parser.add_argument("--workers", type=int, default=2, help="number of rounds at the same time")
    parser.add_argument("--max-seconds", type=float, default=MAX_SECONDS, help="longest duration of one process")
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    arguments = parser.parse_args()
    # A shell starts background jobs with SIGINT ignored, and their child processes inherit that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    start = perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        kills, conditions = torture(
            folder, arguments.kills, arguments.seed, arguments.only or CHOICES, arguments.workers
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    add_time_problems([*kills, *conditions], arguments.max_seconds)
    command = f"python -m torture --kills {arguments.kills} --seed {arguments.seed}"
    command += "".join(f" --only {part}" for part in arguments.only or ())
    text = render(kills, conditions, command, perf_counter() - start, arguments.max_seconds)
    text = re.sub(rf"{re.escape(str(folder))}/[^/\s]+/", "", text)  # the same text on every machine
    print(text)
    if arguments.output:
        arguments.output.write_text(text)
    if any(each.problems for each in (*kills, *conditions)):  # conditions that cannot be mounted here are no problem
        sys.exit(1)


def torture(
    folder: Path, kills: int, seed: int, parts: tuple[str, ...] | list[str], workers: int
) -> tuple[list[Observation], list[Observation]]:
    """Run the chosen parts with a progress bar.

    Args:
        folder: An empty folder to work in.
        kills: Number of signals.
        seed: Seed of the moments.
        parts: Names out of ``CHOICES``.
        workers: Number of rounds at the same time.

    Returns:
        What was observed after each signal, and under each condition.
    """
    workspace = Workspace(folder)
    console = Console(stderr=True, highlight=False)
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        # 'train on shards' belongs to both of its parts.
        killed = tuple(each for each in COMMANDS if {word.rstrip("s") for word in each.name.split()} & set(parts))
        measured = (
            COMMANDS
            if {"conditions", "pairs"} & set(parts)
            else tuple(dict.fromkeys((TRAIN, TRAIN_ON_SHARDS, *killed)))
        )
        preparation = progress.add_task("uninterrupted runs", total=1 + len(measured))
        workspace.prepare()
        progress.advance(preparation)
        for command in measured:
            workspace.measure(command)
            progress.advance(preparation)
        workspace.check_equal_trainings()
        kill_tasks: list[Task] = [
            partial(run_round, workspace, planned) for planned in (plan_rounds(kills, seed, killed) if killed else [])
        ]
        conditions: list[Task] = [partial(run_condition, workspace, condition) for condition in CONDITIONS]
        pairs: list[Task] = [partial(run_pair, workspace, pair) for pair in PAIRS]
        signalled = _run(kill_tasks, workers, progress, "signals")
        observations = _run(conditions if "conditions" in parts else [], workers, progress, "conditions")
        # a pair has two processes of its own
        observations += _run(pairs if "pairs" in parts else [], max(1, workers // 2), progress, "pairs")
        return signalled, observations


def _run(tasks: list[Task], workers: int, progress: Progress, description: str) -> list[Observation]:
    """Run tasks at the same time, show problems as they come, and return the observations in the order of the tasks."""
    bar = progress.add_task(description, total=len(tasks))
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            for future in as_completed(futures):
                progress.advance(bar)
                if problems := problem_list(future.result()):
                    progress.console.print(problems, markup=False, soft_wrap=True, end="")
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C, rounds that run now end and unmount their disks
    return [observation for future in futures for observation in future.result()]


if __name__ == "__main__":
    main()
