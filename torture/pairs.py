"""Run two commands at once that write to, or read from, the same place."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torture.commands import CACHE, KERNELS, OLDER_TRAIN, PREDICT_CSV, PREDICT_PARQUET, REPORT, TRAIN, Command
from torture.comparison import differences, fingerprints
from torture.complete_files import incomplete_files, temporary_files
from torture.process import Outcome, run
from torture.results import Observation, failure_problems, process_problems
from torture.workspace import STDOUT_FILE, Workspace

GROUP = "two at once"
"""Name of these cases in the table."""


@dataclass(frozen=True)
class Pair:
    """A case with two processes."""

    name: str
    run: Callable[[Workspace, Path], Observation]
    command: Command = TRAIN
    """Determines what the working folder holds at the beginning."""


def _same_command(command: Command) -> Callable[[Workspace, Path], Observation]:
    """Two equal commands: the result is that of one, and a command that fails says why."""

    def run_twice(workspace: Workspace, folder: Path) -> Observation:
        processes = [workspace.start(command, folder) for _ in range(2)]
        outcomes = [process.finish() for process in processes]
        observation = Observation(GROUP, "", outcomes, _common_problems(outcomes, folder))
        if outputs := {outcome.stdout for outcome in outcomes if outcome.stdout.startswith("{")}:
            if len(outputs) > 1:
                observation.problems.append("the two commands print different results")
            (folder / STDOUT_FILE).write_text(outputs.pop())
        different = differences(workspace.references[command.name], fingerprints(folder))
        observation.problems += [f"{name} differs" for name in different]
        return observation

    return run_twice


def _different_trainings(workspace: Workspace, folder: Path) -> Observation:
    """Two trainings with different seeds: the folder holds the model of one of them, not a mixture."""
    processes = [workspace.start(command, folder) for command in (TRAIN, OLDER_TRAIN)]
    outcomes = [process.finish() for process in processes]
    observation = Observation(GROUP, "", outcomes, _common_problems(outcomes, folder))
    content = {name: digest for name, digest in fingerprints(folder).items() if name.startswith("model/")}
    candidates = [
        {name: digest for name, digest in digests.items() if name.startswith("model/")}
        for digests in (workspace.references[TRAIN.name], workspace.older)
    ]
    if not any(differences(candidate, content) == [] for candidate in candidates):
        mixed = min((differences(candidate, content) for candidate in candidates), key=len)
        observation.problems.append(f"the folder holds a mixture of both trainings, such as {', '.join(mixed[:4])}")
    return observation


def _predict_during_training(workspace: Workspace, folder: Path) -> Observation:
    """Predictions with a model that is being replaced come from the older or from the new model."""
    workspace.add_older_results(TRAIN, folder)
    training = workspace.start(TRAIN, folder)
    arguments = ("predict", "model", str(workspace.folder / "photos"), "--csv", "answers.csv")
    predictions: list[Outcome] = []
    answers: set[str] = set()
    while training.is_running or not predictions:
        predictions.append(run(arguments, folder, workspace.environment(folder)))
        answers.add((folder / "answers.csv").read_text() if predictions[-1].code == 0 else "")
    outcomes = [training.finish(), *predictions]
    run(arguments, folder, workspace.environment(folder))
    new = (folder / "answers.csv").read_text()
    older_run = run(("predict", str(workspace.folder / "model"), *arguments[2:]), folder, workspace.environment(folder))
    older = (folder / "answers.csv").read_text()
    observation = Observation(GROUP, "", [*outcomes, older_run], _common_problems(outcomes, folder))
    observation.problems += [f"predict failed: {each.stderr[-300:]}" for each in predictions if each.code != 0]
    if not answers <= {older, new}:
        observation.problems.append("predictions of neither the older nor the new model")
    return observation


def _common_problems(outcomes: list[Outcome], folder: Path) -> list[str]:
    problems = incomplete_files(folder)
    for outcome in outcomes:
        problems += process_problems(outcome) + (failure_problems(outcome) if outcome.code else [])
    if all(outcome.code for outcome in outcomes):
        problems.append("both commands failed")
    if leftovers := temporary_files(folder):
        problems.append(f"temporary files stay: {', '.join(path.name for path in leftovers)}")
    return problems


PAIRS = (
    Pair("two equal trainings, one folder", _same_command(TRAIN)),
    Pair("two different trainings, one folder", _different_trainings),
    Pair("predict during train", _predict_during_training),
    Pair("two predict, one CSV file", _same_command(PREDICT_CSV), PREDICT_CSV),
    Pair("two predict, one Parquet file", _same_command(PREDICT_PARQUET), PREDICT_PARQUET),
    Pair("two report, one folder", _same_command(REPORT), REPORT),
    Pair("two evaluate, one empty cache of images", _same_command(CACHE), CACHE),
    Pair("two evaluate, one empty cache of kernels", _same_command(KERNELS), KERNELS),
)
"""All cases with two processes."""


def run_pair(workspace: Workspace, pair: Pair) -> list[Observation]:
    """Run a case.

    Args:
        workspace: The workspace.
        pair: The case.

    Returns:
        One observation.
    """
    folder = workspace.working_folder(pair.name.replace(",", ""), pair.command)
    observation = pair.run(workspace, folder)
    observation.name = pair.name
    shutil.rmtree(folder)
    return [observation]
