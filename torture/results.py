"""What was observed in the rounds, and when it counts as a failure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from torture.process import Outcome

MAX_SECONDS = 20.0
"""Longest duration of one process on a machine that does nothing else."""
MAX_PEAK_BYTES = 1_500_000_000
"""Largest resident memory of one process."""


@dataclass
class Observation:
    """One signal, or one case of a hard condition."""

    group: str
    """Command of a signal, or kind of the condition."""
    name: str
    """Signal, or the condition itself."""
    outcomes: list[Outcome]
    """The processes, in order. The first ones met the condition; the last one ran without it."""
    problems: list[str] = field(default_factory=list)
    """What should not have happened; none if the case passed."""
    phase: str = ""
    """What the command was doing when the signal came."""
    not_run: str = ""
    """Why the case could not be run here."""

    @property
    def is_passed(self) -> bool:
        """Whether the case was run and nothing went wrong."""
        return not self.problems and not self.not_run

    @property
    def seconds(self) -> float:
        """Longest duration of a process."""
        return max((outcome.seconds for outcome in self.outcomes), default=0.0)

    @property
    def peak_bytes(self) -> int:
        """Largest resident memory of a process."""
        return max((outcome.peak_bytes for outcome in self.outcomes), default=0)


def process_problems(outcome: Outcome) -> list[str]:
    """Return what no process may do, whatever its condition: tracebacks, orphans, too much memory.

    Args:
        outcome: The process.

    Returns:
        One line per problem.
    """
    problems = []
    if outcome.has_traceback:
        problems.append(f"traceback: {outcome.stderr[-600:]}")
    if outcome.has_orphans:
        problems.append("processes are left behind")
    if outcome.peak_bytes > MAX_PEAK_BYTES:
        problems.append(f"took {outcome.peak_bytes / 1e6:.0f} MB, more than {MAX_PEAK_BYTES / 1e6:.0f} MB")
    return problems


def failure_problems(outcome: Outcome) -> list[str]:
    """Return what is wrong with the way a command failed: it must exit with 1 and give the reason in one line.

    Args:
        outcome: The process.

    Returns:
        One line per problem.
    """
    reasons = [line for line in outcome.stderr.splitlines() if line.startswith("tigranet: ")]
    if outcome.code != 1 or len(reasons) != 1:
        return [f"expected exit code 1 with one reason, got {outcome.code} with {outcome.stderr[-600:]!r}"]
    return []


def add_time_problems(observations: Iterable[Observation], max_seconds: float) -> None:
    """Add a problem to each observation with a process that took too long.

    Args:
        observations: The observations.
        max_seconds: Longest duration of one process.
    """
    for each in observations:
        if each.seconds > max_seconds:
            each.problems.append(f"took {each.seconds:.1f} s, more than {max_seconds:.0f} s")
