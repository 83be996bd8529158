import io
from pathlib import Path

import pytest
from rich.console import Console

from tigranet.cli.output import print_unreadable_files, progress_console, write_rows
from tigranet.data import UnreadableFile

BROKEN = UnreadableFile(Path("x[1].png"), "the file is empty")


def test_progress_goes_to_stderr(capsys):
    progress_console().print("one")
    progress_console(quiet=True).print("two")
    assert capsys.readouterr() == ("", "one\n")


@pytest.mark.parametrize(("count", "title"), [(0, None), (1, "1 file was left out:"), (2, "2 files were left out:")])
def test_unreadable_files_are_counted_and_listed(count, title):
    console = Console(file=io.StringIO(), width=200)
    print_unreadable_files([BROKEN] * count, console)
    expected = [title, *["  x[1].png: the file is empty"] * count] if title else []
    assert console.file.getvalue().splitlines() == expected


def test_rows_are_printed_and_unreadable_files_are_listed(capsys):
    write_rows(["path", "label"], [{"path": "a", "label": "1"}, BROKEN, {"path": "b", "label": "2"}])
    out, err = capsys.readouterr()
    assert out.splitlines() == ["path,label", "a,1", "b,2"]
    assert "x[1].png" in err


def test_an_error_on_the_way_leaves_the_file_and_lists_what_was_unreadable(tmp_path, capsys):
    (tmp_path / "table.csv").write_text("precious")

    def rows():
        yield {"path": "a"}
        yield BROKEN
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_rows(["path"], rows(), csv=tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == "precious"
    assert "x[1].png" in capsys.readouterr().err


def test_only_one_destination_is_allowed(tmp_path):
    with pytest.raises(ValueError, match="--csv, --parquet and --json"):
        write_rows(["path"], [], csv=tmp_path / "a", as_json=True)
