"""A disk without space: the error names the file, the older file stays, and no temporary file is left."""

import os
import subprocess
import sys

import pytest

WRITE = """
import resource, sys
from pathlib import Path
from tigranet.atomic_files import atomic_binary_write, atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # stands for the space on the disk
if sys.argv[2] == "text":
    with atomic_write(Path(sys.argv[1])) as file:
        file.write("new" * 1000)
else:
    with atomic_binary_write(Path(sys.argv[1])) as file:
        file.write(b"new" * 100_000)
"""


@pytest.mark.parametrize("kind", ["text", "binary"])
def test_a_full_disk_names_the_file_and_leaves_the_older_one(tmp_path, kind):
    path = tmp_path / "answers.csv"
    path.write_text("older")
    process = subprocess.run([sys.executable, "-c", WRITE, str(path), kind], capture_output=True, text=True)
    assert process.stderr.splitlines()[-1].startswith(f"OSError: '{path}' cannot be written: File too large")
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["answers.csv"]
