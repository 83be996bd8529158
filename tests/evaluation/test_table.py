import csv
import json
import sys

import pytest

from tigranet.evaluation import Answer
from tigranet.evaluation.table import whole_file, writer

ANSWERS = [Answer("a, b.png", "nut", 0.5), Answer('quoted".png', "bolt", 1.0)]


def test_rows_come_back_as_they_were(tmp_path):
    with whole_file(tmp_path / "out.csv") as file:
        write = writer(file, as_json=False)
        for answer in ANSWERS:
            write(answer)
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["path"], row["label"], float(row["probability"])) for row in rows] == [
        (answer.path, answer.label, answer.probability) for answer in ANSWERS
    ]


def test_json_lines(tmp_path):
    with whole_file(tmp_path / "out.jsonl") as file:
        write = writer(file, as_json=True)
        for answer in ANSWERS:
            write(answer)
    assert [Answer(**json.loads(line)) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == ANSWERS


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    (tmp_path / "out.csv").write_text("precious")

    def fail():
        with whole_file(tmp_path / "out.csv") as file:
            file.write("half")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "precious"


def test_without_a_name_it_is_the_screen(tmp_path):
    with whole_file(None) as file:
        assert file is sys.stdout
    with (
        pytest.raises(NotADirectoryError, match="cannot be written: there is no folder"),
        whole_file(tmp_path / "no" / "x"),
    ):
        pass
