"""All commands in one process under an ASCII locale, where file names are ASCII and bytes, with hostile names."""

import json
import os
import subprocess
import sys

import pytest

from images import fill
from tigranet import TIGraNet

CLASSES = (b"[red]x", "Ελ".encode(), b"$x^{$", b"\x1b[31m\n", b"caf\xe9", b"_")
COMMANDS = (
    "train DATA -o MODEL --architecture SC[2,2]-S[1] --epochs 1",
    "train DATA -o MODEL --architecture SC[2,2]-S[1] --epochs 1 --overwrite",  # replaces the model and its card
    "evaluate MODEL DATA",
    "predict MODEL DATA",
    "report MODEL DATA -o REPORT --no-cnn --images 2",
    "angles DATA MODEL SC[2,2]-S[1] -o ANGLES --by 90 --images 2",
    "data list",
    "--help",
)


@pytest.fixture
def output(tmp_path):
    """What the commands print. The data folder and the classes have names that are not UTF-8."""
    data = tmp_path / os.fsdecode(b"da[ta\xe9")
    fill(data, {os.fsdecode(name): 8 for name in CLASSES})
    (data / "_" / "broken\x1b.png").touch()
    paths = {"DATA": str(data)} | {name: str(tmp_path / name.lower()) for name in ("MODEL", "REPORT", "ANGLES")}
    commands = [[paths.get(word, word) for word in command.split()] for command in COMMANDS]
    code = (
        "import os, sys\n"
        "from tigranet.cli import main\n"
        "for command in os.fsencode(sys.argv[1]).split(b'\\n\\n'):\n"
        "    sys.argv = ['tigranet', *map(os.fsdecode, command.split(b'\\t'))]\n"
        "    try: main()\n"
        "    except SystemExit as error:\n"
        "        if error.code: raise\n"
    )
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TIGRANET_CACHE": str(tmp_path / "cache")}
    finished = subprocess.run(
        [sys.executable, "-c", code, "\n\n".join("\t".join(command) for command in commands)],
        capture_output=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"} | locale,
    )
    assert finished.returncode == 0, finished.stderr
    return finished


def test_every_command_prints_ascii(output, tmp_path):
    """Paths keep their bytes in rows that a script reads. Everything else is ASCII, without control characters."""
    notices, results = output.stderr.decode("ascii"), output.stdout.replace(b"da[ta\xe9", b"DATA")
    assert r"da[ta\xe9: 36 training" in notices
    assert r"broken\x1b.png: the file is empty" in notices
    assert "\x1b" not in notices
    tables = b"\n".join(line for line in results.splitlines() if line.startswith((b"|", b"+"))).decode("ascii")
    assert "test images of DATA" in tables.replace(r"da[ta\xe9", "DATA")
    assert "+- " in tables
    names = json.loads((tmp_path / "model" / "config.json").read_text())["class_names"]
    assert names == sorted(["[red]x", "Ελ", "$x^{$", "\x1b[31m\n", r"caf\xe9", "_"])
    assert TIGraNet.from_pretrained(tmp_path / "model").class_names == tuple(names)
    assert "± " in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
