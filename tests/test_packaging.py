"""A wheel, an sdist and a clone contain the same package, and the code and links in the documents work."""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import tigranet

ROOT = Path(__file__).parent.parent
PACKAGE = {
    str(path.relative_to(ROOT / "src"))
    for path in (ROOT / "src").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_the_wheel_contains_exactly_the_package(distributions):
    (wheel,) = distributions.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info" not in name} == PACKAGE
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_sdist_contains_the_package_and_everything_its_tests_need(distributions):
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {f"src/{name}" for name in PACKAGE} <= names
    assert {"tests/conftest.py", "Makefile", "constraints.txt", "README.md", "LICENSE"} <= names
    assert not any(name.startswith((".", "carry", "demo", "model/")) and name != ".gitignore" for name in names)


def test_the_python_code_in_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(code, {})


def test_links_in_the_documents_have_a_target():
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("results/*.md")):
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            assert target.startswith("https://") or (document.parent / target).exists(), (document.name, target)


def test_builds_from_the_checkout_and_from_the_sdist_have_the_same_bytes(distributions, tmp_path):
    """They do not depend on the folder or on the times of the files."""
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    for file in (path for path in unpacked.rglob("*") if path.is_file()):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    again = tmp_path / "again"
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(again)]  # one process, 'build' has six
    subprocess.run(command, check=True, capture_output=True, cwd=unpacked)
    checksums = [
        {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in d.iterdir()} for d in (distributions, again)
    ]
    assert checksums[0] == checksums[1]
    assert len(checksums[0]) == 2


def test_citation_changelog_and_package_name_the_same_version():
    (cited,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    released = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited == tigranet.__version__
    assert released[:1] in ([], [tigranet.__version__])
