import csv
import json
import os
import stat
import sys
import threading

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


FORMULAS = [{"path": "-a.png", "label": label, "probability": -1.0} for label in ("=1+1", "+1", "-1", "@x", "\t=1")]


def test_text_that_a_spreadsheet_would_execute_is_quoted_in_csv_only(tmp_path, capsys):
    import pyarrow.parquet as pq

    with open_row_writer(NAMES, csv_file=tmp_path / "out.csv") as write:
        for row in FORMULAS:
            write(row)
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert rows == [["'-a.png", f"'{row['label']}", "-1.0"] for row in FORMULAS]
    with open_row_writer(NAMES) as write:
        write(FORMULAS[0])
    assert capsys.readouterr().out.splitlines()[1] == "'-a.png,'=1+1,-1.0"
    with open_row_writer(NAMES, as_json=True) as write:
        write(FORMULAS[0])
    assert json.loads(capsys.readouterr().out) == FORMULAS[0]
    with open_row_writer(NAMES, parquet=tmp_path / "out.parquet") as write:
        for row in FORMULAS:
            write(row)
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == FORMULAS


def test_column_names_are_quoted_too(tmp_path):
    with open_row_writer(["path", "=x"], csv_file=tmp_path / "out.csv") as write:
        write({"path": "a", "=x": 1.0})
    assert (tmp_path / "out.csv").read_text() == "path,'=x\na,1.0\n"


@pytest.mark.parametrize("kind", ["csv_file", "parquet"])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, kind):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with open_row_writer(NAMES, **{kind: tmp_path / "link"}) as write:
        write(ROWS[0])
    assert (tmp_path / "link").is_symlink()
    assert b"nut" in (tmp_path / "target").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]


@pytest.mark.parametrize("kind", ["csv_file", "parquet"])
def test_a_device_stays(tmp_path, kind):
    """The device is one of its own: a wrong program, run by the administrator, would delete /dev/null."""
    try:
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        (tmp_path / "null").write_text("")
    except OSError as error:
        pytest.skip(f"this user cannot create devices: {error}")
    with open_row_writer(NAMES, **{kind: tmp_path / "null"}) as write:
        write(ROWS[0])
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", ["csv_file", "parquet"])
def test_a_named_pipe_receives_the_rows(tmp_path, kind):
    import pyarrow as pa
    import pyarrow.parquet as pq

    os.mkfifo(tmp_path / "pipe")
    parts = []
    reader = threading.Thread(target=lambda: parts.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    with open_row_writer(NAMES, **{kind: tmp_path / "pipe"}) as write:
        for row in ROWS:
            write(row)
    reader.join(timeout=20)
    if kind == "parquet":
        assert pq.read_table(pa.BufferReader(parts[0])).to_pylist() == ROWS
    else:
        assert len(parts[0].splitlines()) == 3
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_without_a_file_rows_are_printed_as_csv_or_as_json_lines(capsys):
    with open_row_writer(NAMES) as write:
        write(ROWS[0])
    assert capsys.readouterr().out == 'path,label,probability\n"a, b.png",nut,0.5\n'
    with open_row_writer(NAMES, as_json=True) as write:
        write(ROWS[1])
    assert json.loads(capsys.readouterr().out) == ROWS[1]
