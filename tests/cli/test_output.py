import io
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tigranet.cli.output import (
    print_line,
    print_table,
    print_unreadable_files,
    printing_may_fail,
    progress_console,
    write_rows,
)
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


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_notices_are_shown_as_they_are(capsys):
    progress_console().print("[/] [red]:smile: \x1b[31m")
    print_unreadable_files([UnreadableFile(Path("a\nb\x1b.png"), "[/]")], Console(stderr=True, soft_wrap=True))
    assert capsys.readouterr().err.splitlines() == [
        r"[/] [red]:smile: \x1b[31m", "1 file was left out:", r"  a\nb\x1b.png: [/]",
    ]  # fmt: skip


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_only_a_terminal_needs_control_characters_written_out(monkeypatch, stream):
    monkeypatch.setattr(sys, "stdout", stream())
    print_line(Path("a\x1b[31m"))
    write_rows(["path", "label"], [{"path": "b\x1b[31m", "label": "[red]\u202e"}])
    control, direction = (r"\x1b", r"\u202e") if stream is Terminal else ("\x1b", "\u202e")
    expected = [f"a{control}[31m", "path,label", f"b{control}[31m,[red]{direction}"]
    assert sys.stdout.getvalue().split("\n")[:-1] == expected


def test_a_table_is_printed_to_stdout(capsys):
    table = Table("[/]", "[red]b")
    table.add_row("\x1b[31m", "[/]")
    print_table(table)
    out = capsys.readouterr().out
    for text in ("[/]", "[red]b", r"\x1b[31m"):
        assert text in out


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), MemoryError(), UnicodeError("no"), OSError("x")])
def test_results_that_cannot_be_printed_are_no_error_once_the_model_is_saved(capsys, error):
    console = progress_console()
    with printing_may_fail(console, "the model is saved in '[/]'"):
        raise error
    (line,) = capsys.readouterr().err.splitlines()
    assert "saved in '[/]'" in line
    with pytest.raises(KeyboardInterrupt), printing_may_fail(console, ""):
        raise KeyboardInterrupt


def test_rows_need_an_open_stdout(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(ValueError, match=r"closed.*--csv"):
        write_rows(["path"], [{"path": "a"}])
    write_rows(["path"], [{"path": "a"}], csv=tmp_path / "a.csv")
    print_line("nothing")
