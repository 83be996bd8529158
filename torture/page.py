"""The page with the results: what was run, where, and both tables."""

from collections.abc import Sequence

from tigranet.evaluation.provenance import machine, versions
from torture.results import MAX_PEAK_BYTES, MAX_SECONDS, Observation
from torture.table import condition_table, kill_table, problem_list

SIGNALS = """\
## Signals at random moments

A third of the signals come at a random time, the others just after a certain file appears. After each signal, every
visible file must be complete, results of an earlier run must still be there or be replaced as a whole, and no
traceback, process or temporary file may be left; only SIGKILL leaves temporary files, which the next run must remove.
The command then runs to its end, a training with `--resume`, and everything that it writes is compared with an
uninterrupted run, bit by bit except for times and dates. Exit codes are negative where the signal came before or after
the work of tigranet.
"""
CONDITIONS = """\
## Hard conditions

Each command must succeed, or fail with exit code 1 and one line that gives the reason. It must not lose results of an
earlier run. It then runs again without the condition, and must give the results of an undisturbed run. Of two commands
at once, at least one must succeed. No process may take longer than {seconds:.0f} s or more than {gigabytes:.1f} GB.
"""


def render(
    kills: Sequence[Observation],
    conditions: Sequence[Observation],
    command: str,
    seconds: float,
    max_seconds: float = MAX_SECONDS,
) -> str:
    """Return the page.

    Args:
        kills: What was observed after each signal.
        conditions: What was observed under each condition.
        command: The command that was run.
        seconds: Duration of everything.
        max_seconds: Longest duration of one process that passes.

    Returns:
        The page in Markdown.
    """
    run = [each for each in conditions if not each.not_run]
    passed = sum(each.is_passed for each in run)
    parts = [
        "# Signals, full disks, limits, and two processes at once",
        f"{sum(each.is_passed for each in kills)} of {len(kills)} interrupted runs were resumed bit-exactly, and "
        f"{passed} of {len(run)} hard conditions passed, in {seconds / 60:.0f} minutes.",
        f"Command: `{command}`.\n"
        f"Versions: {', '.join(f'{name} {version}' for name, version in versions().items())}.\n"
        f"Machine: {', '.join(f'{name} {value}' for name, value in machine().items())}.",
    ]
    if kills:
        parts += [SIGNALS.strip(), kill_table(kills).strip()]
    if conditions:
        parts += [
            CONDITIONS.strip().format(seconds=max_seconds, gigabytes=MAX_PEAK_BYTES / 1e9),
            condition_table(conditions).strip(),
        ]
    if problems := problem_list([*kills, *conditions]):
        parts += ["## Problems", problems.strip()]
    return "\n\n".join(parts) + "\n"
