import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tigranet.cli.plain_console import PlainConsole

HOSTILE = ["[red]x[/red]", "[/]", "[bold", ":smile:", "a\x1b[31mb", "a\nb", "\u202egnp.exe", "caf\udce9", "\ud800", ""]
SHOWN = ["[red]x[/red]", "[/]", "[bold", ":smile:", r"a\x1b[31mb", r"a\nb", r"\u202egnp.exe", r"caf\xe9", r"\ud800", ""]


def console(encoding="utf-8", **options):
    return PlainConsole(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding), width=120, **options)


def printed(console):
    console.file.flush()
    return console.file.buffer.getvalue().decode(console.file.encoding)


@pytest.mark.parametrize(("text", "shown"), list(zip(HOSTILE, SHOWN, strict=True)))
def test_text_is_shown_as_it_is(text, shown):
    plain = console()
    plain.print(text)
    assert printed(plain) == f"{shown}\n"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_table_shows_its_texts_as_they_are(encoding):
    plain = console(encoding)
    table = Table(*HOSTILE[:3], title=HOSTILE[4])
    for text in (*HOSTILE, "λ", "94 ± 0.4"):
        table.add_row(text, text, "1")
    plain.print_table(table)
    lines = printed(plain).splitlines()
    assert SHOWN[4] in lines[0]
    for text in (*SHOWN, *(("λ", "94 ± 0.4") if encoding == "utf-8" else (r"\u03bb", "94 +- 0.4"))):
        assert any(line.count(text) >= 2 for line in lines)
    assert len({len(line) for line in lines[1:]}) == 1  # the columns are aligned
    assert encoding == "utf-8" or printed(plain).isascii()


def test_the_layout_of_the_columns_is_kept():
    table = Table(title="t", title_justify="left")
    table.add_column("a", no_wrap=True)
    table.add_column("b", justify="right")
    table.add_row("1", "1000000")
    table.add_row("1", "2")
    plain, ordinary = console(), Console(file=io.StringIO(), width=120)
    plain.print_table(table)
    ordinary.print(table)
    assert printed(plain) == ordinary.file.getvalue()


@pytest.mark.parametrize(("encoding", "frames"), [("ascii", "-\\|/"), ("utf-8", "⠋")])
def test_a_status_shows_its_text_as_it_is_beside_a_spinner_that_the_terminal_has(encoding, frames):
    status = console(encoding, force_terminal=True).status("measuring [/] \x1b")
    assert isinstance(status.status, Text)
    assert status.status.plain == r"measuring [/] \x1b"
    assert frames[0] in status.renderable.frames


def test_a_reader_that_has_gone_is_an_error_rather_than_the_end_of_the_process():
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        PlainConsole(file=Broken()).print("a")
