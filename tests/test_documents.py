"""The pages and the examples do what they say: each is run as it is written, but for the epochs of a training."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from images import fill
from tigranet import TIGraNet

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHORT = "tigranet train my_images/ --epochs 3"
"""All epochs take a minute or two, and `make demo` shows what comes of them."""


def run(command, folder):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, (command, finished.stderr)
    return finished.stdout


@pytest.mark.parametrize(
    "page", [page for page in PAGES if re.search("```(python|bash)", page.read_text())], ids=lambda page: page.stem
)
def test_a_page_runs_as_it_is_written(page, tmp_path):
    python = ""
    for language, code in re.findall(r"```(python|bash)\n(.*?)```", page.read_text(), re.DOTALL):
        if language == "python":
            python += code
            continue
        if python:
            run([sys.executable, "-c", python], tmp_path)
            python = ""
        for line in code.splitlines():
            run(["bash", "-c", line.replace("tigranet train my_images/", SHORT)], tmp_path)
    if python:
        run([sys.executable, "-c", python], tmp_path)


ARGUMENTS = {
    "train_on_a_folder": ["photos", "model", "2"],
    "filters_over_the_spectrum": ["filters.png"],
    "oriented_pictures": ["images"],
    "sort_into_folders": ["model", "photos", "sorted"],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs(example, tmp_path):
    fill(tmp_path / "photos", {"a": 12, "b": 12})
    TIGraNet("SC[2,2]-S[2]", 2, class_names=["a", "b"], image_size=12).save_pretrained(tmp_path / "model")
    told = run([sys.executable, str(example), *ARGUMENTS.get(example.stem, [])], tmp_path)
    assert told or (tmp_path / "filters.png").stat().st_size > 10_000
