"""The check for lost speed: ratios of two pieces of work, and what counts as a loss."""

import json
import sys
import time

import pytest
import torch
from benchmarks import check_regression
from benchmarks.check_regression import Pair, check, measure_ratio, min_until_below

CPU = torch.device("cpu")


def busy(milliseconds):
    def compute():
        end = time.process_time() + milliseconds / 1e3
        while time.process_time() < end:
            pass

    return compute


def test_the_ratio_is_that_of_the_shortest_times():
    assert measure_ratio(Pair(busy(2), busy(8)), CPU, rounds=3) == pytest.approx(0.25, rel=0.3)


def test_a_ratio_is_measured_again_before_it_is_a_loss():
    values = iter([3.0, 2.0, 1.0, 4.0, 0.7, 0.9])
    assert min_until_below(lambda: next(values), limit=2.5) == 2.0
    assert next(values) == 1.0
    assert min_until_below(lambda: next(values), limit=0.1) == 0.7
    assert list(values) == []


def test_only_losses_beyond_the_limit_are_reported(monkeypatch, capsys):
    ratios = {"same": 1.0, "a little slower": 1.14, "slower": 1.16}
    monkeypatch.setattr(check_regression, "measure_ratio", lambda pair, *_: ratios[pair])
    built = {name: lambda name=name: name for name in ratios}
    losses = check(dict.fromkeys(ratios, 1.0), built, CPU, rounds=1)
    assert [loss.split(":")[0] for loss in losses] == ["slower"]
    assert "16 %" in losses[0]
    assert check({}, {"new": lambda: None}, CPU, rounds=1) == ["new: no recorded ratio, run with --record"]
    capsys.readouterr()


def test_the_command_records_ratios_and_fails_on_a_loss(tmp_path, monkeypatch, capsys):
    path, ratio = tmp_path / "ratios.json", [0.5]
    monkeypatch.setattr(check_regression, "pairs", lambda device: {"work": lambda: None})
    monkeypatch.setattr(check_regression, "measure_ratio", lambda *_: ratio[0])
    arguments = ["check_regression", "--file", str(path)]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit, match="--record"):
        check_regression.main()
    monkeypatch.setattr(sys, "argv", [*arguments, "--record"])
    check_regression.main()
    assert json.loads(path.read_text())["ratios"] == {"work": 0.5}
    monkeypatch.setattr(sys, "argv", arguments)
    check_regression.main()
    ratio[0] = 0.6
    with pytest.raises(SystemExit, match="20 %"):
        check_regression.main()
    capsys.readouterr()


def test_a_record_of_another_machine_is_named_with_the_losses(tmp_path, monkeypatch, capsys):
    path = tmp_path / "ratios.json"
    path.write_text(json.dumps({"machine": {"cpu": "other CPU", "threads": 7, "gpu": None}, "ratios": {"work": 0.1}}))
    monkeypatch.setattr(check_regression, "pairs", lambda device: {"work": lambda: None})
    monkeypatch.setattr(check_regression, "measure_ratio", lambda *_: 0.5)
    monkeypatch.setattr(sys, "argv", ["check_regression", "--file", str(path)])
    with pytest.raises(SystemExit, match="7 threads of other CPU"):
        check_regression.main()
    output = capsys.readouterr().out
    assert "7 threads of other CPU" in output
    assert check_regression.machine()["cpu"] in output


def test_our_version_and_the_reference_are_different_work_of_the_same_network():
    for training in (False, True):
        pair = check_regression.plain_pair("SC[2,2]-S[2]", 6, 2, training, CPU)
        assert measure_ratio(pair, CPU, rounds=1) > 0
    assert set(check_regression.pairs(CPU)) != set(check_regression.pairs(torch.device("cuda")))
