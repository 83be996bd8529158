import io
import os
import subprocess
import sys

import pytest

from tigranet.cli.streams import PRINTABLE, TolerantStream, flush_results, prepared_streams


class BrokenStream(io.StringIO):
    """A stream that nobody reads."""

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("bolt", "ascii", b"bolt"),
        ("94 ± 0.4", "ascii", b"94 +- 0.4"),
        ("94 ± 0.4", "utf-8", "94 ± 0.4".encode()),
        ("λ日😀", "ascii", rb"\u03bb\u65e5\U0001f600"),
        ("é日", "latin-1", b"\xe9\\u65e5"),
        ("caf\udce9", "utf-8", b"caf\xe9"),  # a file name that is not UTF-8 keeps its bytes
        ("\udcce\udcbb±", "ascii", b"\xce\xbb+-"),
        ("\ud800", "utf-8", rb"\ud800"),
    ],
)
def test_standard_output_can_write_any_text(text, encoding, expected):
    assert text.encode(encoding, PRINTABLE) == expected


def test_standard_error_ignores_that_it_cannot_be_written(monkeypatch):
    monkeypatch.setattr(sys, "stderr", BrokenStream())
    with prepared_streams():
        print("progress", file=sys.stderr, flush=True)
        assert sys.stderr.write("progress") == 8
    assert isinstance(sys.stderr, BrokenStream)


def test_a_closed_standard_error_is_ignored_too():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    stream.close()
    TolerantStream(stream).write("progress")


def test_a_tolerant_stream_is_otherwise_the_stream_itself():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    TolerantStream(stream).write("a")
    TolerantStream(stream).flush()
    assert stream.buffer.getvalue() == b"a"
    assert TolerantStream(stream).encoding == "ascii"
    assert not TolerantStream(stream).isatty()


def test_an_error_of_standard_output_is_raised(monkeypatch):
    monkeypatch.setattr(sys, "stdout", BrokenStream())
    with pytest.raises(OSError, match=r"standard output.*No space left"):
        flush_results()
    monkeypatch.setattr(sys, "stdout", None)
    flush_results()


def test_files_never_take_the_place_of_closed_streams(tmp_path):
    """With standard error closed, the first file would otherwise receive what any library prints there."""
    code = (
        "import os, sys\n"
        "from tigranet.cli.streams import prepared_streams\n"
        "with prepared_streams(), open(sys.argv[1], 'wb') as file:\n"
        "    os.write(2, b'a warning of a library')\n"
        "    os.write(1, b'more')\n"
        "    file.write(b'weights %d' % file.fileno())\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], check=True, env=os.environ)
    content = (tmp_path / "file").read_bytes()
    assert content.startswith(b"weights ")
    assert int(content.split()[1]) > 2
