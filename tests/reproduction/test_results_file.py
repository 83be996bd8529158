import json
import subprocess
import sys

from tigranet.reproduction import results_file
from tigranet.reproduction.results_file import append_record, read_records


def test_appended_records_are_read_in_order(tmp_path):
    path = tmp_path / "runs.jsonl"
    assert read_records(path) == []
    for seed in range(3):
        append_record(path, {"seed": seed, "text": "one\nline"})
    assert [record["seed"] for record in read_records(path)] == [0, 1, 2]
    assert len(path.read_text().splitlines()) == 3


def test_an_incomplete_line_spoils_no_other(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_record(path, {"seed": 0})
    with path.open("a") as file:
        file.write('{"seed": 1, "mov')
    append_record(path, {"seed": 2})
    assert [record["seed"] for record in read_records(path)] == [0, 2]


def test_lines_of_several_processes_are_not_mixed(tmp_path):
    path = tmp_path / "runs.jsonl"
    code = (  # this file only, because PyTorch is slow to load
        "import runpy, sys; from pathlib import Path; append = runpy.run_path(sys.argv[1])['append_record']\n"
        "for n in range(200): append(Path(sys.argv[2]), {'by': sys.argv[3], 'n': n, 'long': 'x' * 3000})"
    )
    command = [sys.executable, "-c", code, results_file.__file__, str(path)]
    writers = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for name in "ab":
        assert [record["n"] for record in records if record["by"] == name] == list(range(200))
