import csv
import json
import os
import sys

import pytest

from tigranet.evaluation.row_writer import open_row_writer

NAMES = ["path", "label", "probability"]
ROWS = [
    {"path": "a, b.png", "label": "nut", "probability": 0.5},
    {"path": 'quoted".png', "label": "bolt", "probability": 1.0},
]


def test_csv_rows_are_read_back(tmp_path):
    with open_row_writer(NAMES, csv_file=tmp_path / "out.csv") as write:
        for row in ROWS:
            write(row)
    with (tmp_path / "out.csv").open() as file:
        assert [row | {"probability": float(row["probability"])} for row in csv.DictReader(file)] == ROWS


def test_parquet_rows_are_read_back(tmp_path):
    import pyarrow.parquet as pq

    not_utf8 = {"path": os.fsdecode(b"caf\xe9.png"), "label": "nut", "probability": 0.25}
    with open_row_writer(NAMES, parquet=tmp_path / "out.parquet") as write:
        for row in [*ROWS * 3000, not_utf8]:
            write(row)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert rows[:-1] == ROWS * 3000
    assert rows[-1]["path"] == "caf\ufffd.png"
    assert len(list(tmp_path.iterdir())) == 1


def test_parquet_that_fails_keeps_the_old_file_and_leaves_no_other(tmp_path):
    (tmp_path / "out.parquet").write_text("precious")

    def fail():
        with open_row_writer(NAMES, parquet=tmp_path / "out.parquet") as write:
            write(ROWS[0])
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]
    assert (tmp_path / "out.parquet").read_text() == "precious"
    with (
        pytest.raises(NotADirectoryError, match=r"'.*no'"),
        open_row_writer(NAMES, parquet=tmp_path / "no" / "x.parquet"),
    ):
        pass


def test_parquet_without_pyarrow_is_an_error_with_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with (
        pytest.raises(ModuleNotFoundError, match=r"pip install 'tigranet\[parquet\]'"),
        open_row_writer(NAMES, parquet=tmp_path / "out.parquet"),
    ):
        pass


def test_without_a_file_rows_are_printed_as_csv_or_as_json_lines(capsys):
    with open_row_writer(NAMES) as write:
        write(ROWS[0])
    assert capsys.readouterr().out == 'path,label,probability\n"a, b.png",nut,0.5\n'
    with open_row_writer(NAMES, as_json=True) as write:
        write(ROWS[1])
    assert json.loads(capsys.readouterr().out) == ROWS[1]
