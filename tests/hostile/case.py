"""One hostile input, the command that reads it, and what must come of it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

MAX_SECONDS = 20.0
"""Largest CPU time of a command."""
MAX_MEGABYTES = 1500
"""Largest resident set of a process."""
MAX_LINE = 6000
"""Largest number of characters of a line on stderr: a message may name a path, but not repeat a file."""
PYTHON_FUNCTIONS = ("from_pretrained", "load_user_data")
"""Functions of the library that the runner calls in place of a command."""

Outcome = Literal["refused", "left out", "used", "any"]
"""``refused``: exit code 1 and one line with the reason. ``left out``: exit code 0, and a line on stderr for each bad
file. ``used``: exit code 0. ``any``: one of these."""


@dataclass(frozen=True)
class Case:
    """A command with a hostile input."""

    name: str
    """Short description of the input."""
    arguments: tuple[str, ...]
    """Arguments of ``tigranet``, or one of :data:`PYTHON_FUNCTIONS` and its argument."""
    outcome: Outcome
    """What must happen."""
    mentions: tuple[str, ...] = ()
    """Texts that stderr must contain: the name of the file, the line, the reason."""
    seconds: float = MAX_SECONDS
    """Limit of the CPU time."""
    extra_megabytes: int = MAX_MEGABYTES
    """Limit of the memory beyond what the imported packages take."""
    unprivileged: bool = False
    """Whether to give up the rights of an administrator, for whom no file is unreadable."""

    @property
    def title(self) -> str:
        """The command and the input, to name the case in a report."""
        return f"{self.arguments[0]}: {self.name}"


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    code: int
    """Exit code; negative for the signal that ended the process."""
    timed_out: bool
    """Whether the process was killed because it did not end."""
    out: str
    """What it wrote to stdout."""
    err: str
    """What it wrote to stderr."""
    seconds: float
    """CPU time."""
    megabytes: float
    """Peak of the resident set."""
    extra_megabytes: float
    """The same without what the imported packages take."""


def problems(case: Case, result: Finished) -> list[str]:
    """Compare what happened with what must happen. Without a difference, the list is empty."""
    if result.timed_out:
        return ["it did not end"]
    return [*_resource_problems(case, result), *_outcome_problems(case, result)]


def _resource_problems(case: Case, result: Finished) -> Iterable[str]:
    if result.seconds > case.seconds:
        yield f"it took {result.seconds:.1f} s of CPU time, more than {case.seconds:g}"
    if result.megabytes > MAX_MEGABYTES:
        yield f"its resident set was {result.megabytes:,.0f} MB, more than {MAX_MEGABYTES:,}"
    if result.extra_megabytes > case.extra_megabytes:
        yield f"it took {result.extra_megabytes:,.0f} MB, more than {case.extra_megabytes:,}"


def _outcome_problems(case: Case, result: Finished) -> Iterable[str]:
    lines = result.err.splitlines()
    reasons = [line for line in lines if line.startswith("tigranet: ")]
    allowed_codes = {"refused": (1,), "left out": (0,), "used": (0,), "any": (0, 1)}[case.outcome]
    if result.code not in allowed_codes:
        yield f"exit code {result.code}, expected {' or '.join(map(str, allowed_codes))}"
    if result.code == 1 and (len(reasons) != 1 or lines[-1:] != reasons):
        yield "expected one line 'tigranet: reason' at the end"
    if result.code == 0 and reasons:
        yield "expected no error"
    if "Traceback" in result.err + result.out:
        yield "a traceback"
    if re.search(r"\w+Warning\b", result.err):
        yield "a Python warning"
    if unexpected := [line for line in lines if line not in reasons and not _is_notice(line)]:
        yield f"unexpected on stderr: {unexpected[0][:200]!r}"
    if control := re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", result.err):
        yield f"the control character {control[0]!r} on stderr"
    if longest := max((len(line) for line in lines if len(line) > MAX_LINE), default=0):
        yield f"a line of {longest:,} characters"
    for text in case.mentions:
        if text not in result.err:
            yield f"stderr does not mention {text!r}"


def _is_notice(line: str) -> bool:
    """Whether a line is one that a command prints on stderr without an error: an indented file, or a notice."""
    return line.startswith("  ") or not re.match(r"\s*(File \"|[\w.]+(Error|Exception)\b)", line)
