"""The tables count what passed, and name what failed, took longest, and could not be run."""

from pathlib import Path

import pytest
from torture.page import render
from torture.process import Outcome
from torture.results import Observation, add_time_problems, failure_problems, process_problems
from torture.table import condition_table, kill_table, problem_list


def outcome(code=0, stderr="", seconds=1.0, peak=100_000_000, orphans=False):
    return Outcome(("train",), code, "", stderr, seconds, peak, has_orphans=orphans)


def rows(table):
    return [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in table.splitlines()]


def test_signals_are_counted_by_command_and_signal():
    observations = [
        Observation("train", "SIGKILL", [outcome(-9), outcome(seconds=3)], phase="training"),
        Observation("train", "SIGKILL", [outcome(-9), outcome(peak=200_000_000)], ["model differs"], "start"),
        Observation("report", "SIGINT", [outcome(130), outcome()], phase="start"),
    ]
    header, _, *body = rows(kill_table(observations))
    table = [dict(zip(header, row, strict=True)) for row in body]
    assert [(row["command"], row["sent"], row["resumed bit-exactly"]) for row in table] == [
        ("report", "1", "1"),
        ("train", "2", "1"),
        ("all", "3", "2"),
    ]
    assert table[1]["exit codes"] == "-9"
    assert table[1]["longest, s"] == "3.0"
    assert table[1]["peak, MB"] == "200"
    assert "training 1" in table[1]["at the time of"]


def test_conditions_have_one_row_each():
    observations = [
        Observation("full disk", "train", [outcome(1, "epoch 1\ntigranet: no space | left\n"), outcome()]),
        Observation("full disk", "report", [outcome(0)], ["a traceback"]),
        Observation("read-only", "train", [], not_run="must be superuser"),
    ]
    table = condition_table(observations)
    assert "| full disk | train | passed | 1, 0 | tigranet: no space \\| left |" in table
    assert "| full disk | report | FAILED |" in table
    assert "not run: must be superuser" in table
    assert problem_list(observations) == "- full disk, report: a traceback\n"


def test_the_page_says_what_was_run_where_and_how_much_passed():
    kills = [Observation("train", "SIGKILL", [outcome(-9), outcome()])]
    page = render(kills, [Observation("full disk", "x", [], not_run="no root")], "python -m torture --seed 7", 120)
    assert "1 of 1 interrupted runs were resumed bit-exactly, and 0 of 0 hard conditions passed" in page
    assert "--seed 7" in page
    assert "torch" in page
    assert "cpu" in page
    assert "## Problems" not in page
    assert str(Path.home()) not in page


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (outcome(1, "Traceback (most recent call last):\n"), "traceback"),
        (outcome(0, "Exception ignored in: <x>\n"), "traceback"),
        (outcome(0, orphans=True), "left behind"),
        (outcome(0, peak=2_000_000_000), "2000 MB"),
    ],
)
def test_what_no_process_may_do(result, problem):
    (text,) = process_problems(result)
    assert problem in text


def test_a_failure_needs_exit_code_1_and_one_line():
    assert process_problems(outcome(1, "tigranet: reason\n")) == []
    assert failure_problems(outcome(1, "tigranet: reason\n  a note\n")) == []
    for result in (outcome(1), outcome(-11, "tigranet: reason\n"), outcome(1, "tigranet: a\ntigranet: b\n")):
        assert failure_problems(result)


def test_a_process_that_takes_too_long_is_a_problem():
    observations = [Observation("full disk", "x", [outcome(seconds=seconds)]) for seconds in (5, 25)]
    add_time_problems(observations, max_seconds=20)
    assert [each.is_passed for each in observations] == [True, False]
