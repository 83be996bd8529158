"""The results as Markdown tables."""

from collections import Counter
from collections.abc import Iterable, Sequence

from torture.results import Observation


def kill_table(observations: Sequence[Observation]) -> str:
    """Return a table of the signals: one row per command and signal, and a sum.

    Args:
        observations: One per signal.

    Returns:
        The table in Markdown.
    """
    groups: dict[tuple[str, str], list[Observation]] = {}
    for observation in sorted(observations, key=lambda each: (each.group, each.name)):
        groups.setdefault((observation.group, observation.name), []).append(observation)
    rows = [[command, signal, *_kill_columns(each)] for (command, signal), each in groups.items()]
    rows.append(["all", "", *_kill_columns(observations)])
    return _table(
        ["command", "signal", "sent", "resumed bit-exactly", "exit codes", "at the time of", "longest, s", "peak, MB"],
        rows,
    )


def _kill_columns(observations: Sequence[Observation]) -> list[str]:
    codes = Counter(str(each.outcomes[0].code) for each in observations if each.outcomes)
    phases = Counter(each.phase for each in observations if each.phase)
    return [
        str(len(observations)),
        str(sum(each.is_passed for each in observations)),
        ", ".join(sorted(codes)),
        ", ".join(f"{phase} {count}" for phase, count in phases.most_common()),
        *_resources(observations),
    ]


def condition_table(observations: Sequence[Observation]) -> str:
    """Return a table of the conditions: one row each.

    Args:
        observations: One per condition.

    Returns:
        The table in Markdown.
    """
    rows = []
    for each in observations:
        codes = ", ".join(str(outcome.code) for outcome in each.outcomes)
        reason = next((outcome.reason for outcome in each.outcomes if outcome.code), "")
        result = f"not run: {each.not_run}" if each.not_run else "passed" if each.is_passed else "FAILED"
        rows.append([each.group, each.name, result, codes, reason, *_resources([each])])
    return _table(["condition", "case", "result", "exit codes", "reason", "longest, s", "peak, MB"], rows)


def problem_list(observations: Iterable[Observation]) -> str:
    """Return what went wrong, one line per problem; nothing if all is well.

    Args:
        observations: All observations.

    Returns:
        A list in Markdown.
    """
    return "".join(
        f"- {each.group}, {each.name}{f', {each.phase}' if each.phase else ''}: {' '.join(problem.split())}\n"
        for each in observations
        for problem in each.problems
    )


def _resources(observations: Sequence[Observation]) -> list[str]:
    seconds = max((each.seconds for each in observations), default=0.0)
    peak = max((each.peak_bytes for each in observations), default=0)
    return [f"{seconds:.1f}", f"{peak / 1e6:.0f}"]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
