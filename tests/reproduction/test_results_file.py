import json
import subprocess
import sys

from tigranet.reproduction import results_file as module
from tigranet.reproduction.results_file import add_record, records


def test_what_is_added_is_there_in_order(tmp_path):
    path = tmp_path / "runs.jsonl"
    assert records(path) == []
    for seed in range(3):
        add_record(path, {"seed": seed, "text": "one\nline"})
    assert [record["seed"] for record in records(path)] == [0, 1, 2]
    assert len(path.read_text().splitlines()) == 3


def test_a_line_that_was_broken_off_spoils_no_other(tmp_path):
    path = tmp_path / "runs.jsonl"
    add_record(path, {"seed": 0})
    with path.open("a") as file:
        file.write('{"seed": 1, "mov')
    add_record(path, {"seed": 2})
    assert [record["seed"] for record in records(path)] == [0, 2]


def test_lines_of_several_processes_do_not_run_into_each_other(tmp_path):
    path = tmp_path / "runs.jsonl"
    code = (  # the file alone, without PyTorch
        "import runpy, sys; from pathlib import Path; add = runpy.run_path(sys.argv[1])['add_record']\n"
        "for n in range(200): add(Path(sys.argv[2]), {'by': sys.argv[3], 'n': n, 'long': 'x' * 3000})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, module.__file__, str(path), name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    found = [json.loads(line) for line in path.read_text().splitlines()]
    for name in "ab":
        assert [record["n"] for record in found if record["by"] == name] == list(range(200))
