"""Signals are distributed over commands, and a command that was killed gives the results of one that was not."""

import signal
from collections import Counter
from dataclasses import replace

import pytest
from torture.commands import COMMANDS, PREDICT_CSV, SHARES, TRAIN
from torture.images import write_images
from torture.kills import Round, plan_rounds, run_round
from torture.workspace import Workspace

from tigranet import TIGraNet


def test_every_command_has_a_share():
    assert set(SHARES) == {command.name for command in COMMANDS}
    assert sum(SHARES.values()) == 100


@pytest.mark.parametrize("kills", [1, 20, 100])
def test_a_plan_has_the_number_of_signals_that_is_asked_for(kills):
    assert sum(len(planned.signals) for planned in plan_rounds(kills, seed=0)) == kills


def test_every_command_gets_every_signal_and_only_trainings_get_several_in_a_row():
    rounds = plan_rounds(100, seed=0)
    counts = Counter((planned.command.name, number) for planned in rounds for number in planned.signals)
    assert all(counts[name, number] for name in SHARES for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    assert {len(planned.signals) for planned in rounds if planned.command is TRAIN} > {1, 2}
    assert all(len(planned.signals) == 1 for planned in rounds if not planned.command.resume)


def test_the_seed_determines_the_plan():
    assert plan_rounds(30, seed=1) == plan_rounds(30, seed=1)
    assert plan_rounds(30, seed=1) != plan_rounds(30, seed=2)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with an untrained network, plain PyTorch instead of kernels, and the results of one prediction."""
    workspace = Workspace(tmp_path_factory.mktemp("torture"))
    write_images(workspace.folder / "photos", per_class=3, size=8)
    network = TIGraNet("SC[2,1]-S[1]-FC[2]", 3, class_names=("a", "b", "c"), image_size=8)
    network.save_pretrained(workspace.folder / "model")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("TIGRANET_KERNELS", "plain")
        workspace.measure(PREDICT_CSV)
        yield workspace


def test_predictions_that_were_killed_while_being_written_are_complete_the_next_time(workspace):
    command = replace(PREDICT_CSV, events=(".saving-*",))
    (observation,) = run_round(workspace, Round(0, command, (signal.SIGKILL,), seed="1"))
    assert observation.problems == []
    assert observation.is_passed
    assert [outcome.code for outcome in observation.outcomes] == [-signal.SIGKILL, 0]


def test_another_result_is_a_problem(workspace):
    references = {PREDICT_CSV.name: {**workspace.references[PREDICT_CSV.name], "answers.csv": "another digest"}}
    (observation,) = run_round(replace(workspace, references=references), Round(1, PREDICT_CSV, (signal.SIGTERM,), "0"))
    assert "answers.csv differs" in observation.problems
    assert not observation.is_passed
