"""Send signals at random moments, resume, and compare the results with those of an uninterrupted run."""

import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from time import time

from torture.commands import COMMANDS, SHARES, Command
from torture.comparison import differences, fingerprints
from torture.complete_files import incomplete_files, make_older, temporary_files
from torture.moments import AfterSeconds, Moment, WhenFileAppears
from torture.results import Observation, process_problems
from torture.workspace import Workspace

EXIT_CODES = {signal.SIGKILL: {-9}, signal.SIGTERM: {143, -15}, signal.SIGINT: {130, -2}}
"""Exit codes of a command that a signal ended; negative: the signal came before tigranet could handle it."""
MAX_CHAIN = 3
"""Largest number of signals in a row before a training is resumed to its end."""
MAX_DELAY = 0.03
"""Longest delay, in seconds, after the appearance of a file."""
EVENT_SHARE = 2 / 3
"""Share of the signals that come when a file appears rather than at a random time."""
ATTEMPTS = 6
"""How often a round is repeated if the command ended before the signal came."""


@dataclass(frozen=True)
class Round:
    """Signals for one command, after which it runs to its end."""

    number: int
    command: Command
    signals: tuple[signal.Signals, ...]
    seed: str


def plan_rounds(kills: int, seed: int, commands: tuple[Command, ...] = COMMANDS) -> list[Round]:
    """Distribute signals over commands; each command gets all three signals equally often.

    Args:
        kills: Number of signals.
        seed: Seed of the lengths of the chains and of the moments.
        commands: The commands to interrupt.

    Returns:
        The rounds in random order.
    """
    rng = random.Random(seed)
    total = sum(SHARES[command.name] for command in commands)
    quotas = {command: kills * SHARES[command.name] // total for command in commands}
    for command in rng.sample(commands, len(commands)) * kills:
        if sum(quotas.values()) < kills:
            quotas[command] += 1
    rounds: list[tuple[Command, tuple[signal.Signals, ...]]] = []
    for command, quota in quotas.items():
        signals = [list(EXIT_CODES)[number % len(EXIT_CODES)] for number in range(quota)]
        rng.shuffle(signals)
        while signals:
            length = rng.randint(1, MAX_CHAIN) if command.resume else 1
            rounds.append((command, tuple(signals[:length])))
            del signals[:length]
    rng.shuffle(rounds)
    return [Round(number, *each, seed=f"{seed} {number}") for number, each in enumerate(rounds)]


def run_round(workspace: Workspace, planned: Round) -> list[Observation]:
    """Interrupt a command, possibly several times, let it run to its end, and check everything.

    Args:
        workspace: The workspace.
        planned: The round.

    Returns:
        One observation per signal.
    """
    rng = random.Random(planned.seed)
    for attempt in range(ATTEMPTS):
        folder = workspace.working_folder(f"round {planned.number}", planned.command)
        observations = _interrupt(workspace, planned, folder, rng, shrink=0.8**attempt)
        if observations is not None:
            _finish(workspace, planned.command, folder, observations)
            shutil.rmtree(folder)
            return observations
    return [
        Observation(planned.command.name, number.name, [], ["the command always ended with success before the signal"])
        for number in planned.signals
    ]


def _interrupt(
    workspace: Workspace, planned: Round, folder: Path, rng: random.Random, shrink: float
) -> list[Observation] | None:
    """Send the signals of a round. Return None if the command ended before one of them."""
    command = planned.command
    older = workspace.add_older_results(command, folder) if rng.random() < 0.5 else {}
    observations: list[Observation] = []
    for number in planned.signals:
        moment = _draw_moment(command, workspace.seconds[command.name] * shrink, rng)
        started = time()
        before = set(_leftovers(workspace, folder))  # of an earlier SIGKILL: this process may end before it sees them
        process = workspace.start(command, folder, resume=bool(observations))
        process.wait_until_ready()
        moment.wait(process, folder)
        process.send(number)
        outcome = process.finish()
        if outcome.code == 0:
            return None
        observation = Observation(command.name, number.name, [outcome], process_problems(outcome))
        observation.phase = _phase(command, folder, started)
        observation.problems += _state_problems(workspace, command, folder, older)
        if outcome.code not in EXIT_CODES[number]:
            observation.problems.append(f"exit code {outcome.code} after {number.name}: {outcome.stderr[-300:]}")
        leftovers = [path for path in _leftovers(workspace, folder) if path not in before]
        if number is not signal.SIGKILL and leftovers:
            observation.problems.append(f"temporary files stay after {number.name}: {_names(leftovers)}")
        make_older(leftovers)
        observations.append(observation)
    return observations


def _leftovers(workspace: Workspace, folder: Path) -> list[Path]:
    return temporary_files(folder) + workspace.system_temporary_files(folder)


def _draw_moment(command: Command, seconds: float, rng: random.Random) -> Moment:
    if command.events and rng.random() < EVENT_SHARE:
        return WhenFileAppears(rng.choice(command.events), rng.uniform(0, MAX_DELAY))
    return AfterSeconds(rng.uniform(0, seconds))


def _phase(command: Command, folder: Path, started: float) -> str:
    phase = "start"
    for name, pattern in command.phases:
        if any(path.stat().st_mtime >= started for path in folder.glob(pattern)):
            phase = name
    return phase


def _state_problems(workspace: Workspace, command: Command, folder: Path, older: dict[str, str]) -> list[str]:
    """Return what is wrong with the files after a signal: incomplete ones, and older ones that are lost."""
    problems = incomplete_files(folder)
    if not problems:
        reference, content = workspace.references[command.name], fingerprints(folder)
        names = [name for name in {**older, **content} if name.startswith(command.final_files)]
        problems += [
            f"{name} is neither the older nor the new one"
            for name in names
            if content.get(name) not in (older.get(name), reference.get(name))
        ]
    return problems


def _finish(workspace: Workspace, command: Command, folder: Path, observations: list[Observation]) -> None:
    """Run the command to its end, and add to all observations what differs from the uninterrupted run."""
    outcome = workspace.run(command, folder, resume=True)
    problems = process_problems(outcome)
    if outcome.code != 0:
        problems.append(f"cannot be resumed, exit code {outcome.code}: {outcome.stderr[-600:]}")
    else:
        result = fingerprints(folder)
        problems += [f"{name} differs" for name in differences(workspace.references[command.name], result)]
        if leftovers := temporary_files(folder):
            problems.append(f"temporary files of interrupted runs stay: {_names(leftovers)}")
    for observation in observations:
        observation.outcomes.append(outcome)
        observation.problems += problems


def _names(paths: list[Path]) -> str:
    return ", ".join(path.name for path in paths)
