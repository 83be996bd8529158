"""README, pages and examples do what they say.

In ``docs/``, every ``python`` and ``bash`` block runs as written, in order, in one empty folder per page. Only the
commands in ``SHORTENED`` run with fewer epochs or images. A ``text`` block shows what the block before it prints. Every
other ``tigranet`` command, in any document, must be accepted by the parser of the command line. ``test_packaging.py``
runs the Python of the README. ``make lint`` checks the links of the site, which Sphinx builds from the same pages.
"""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from images import fill
from tigranet import TIGraNet
from tigranet.cli.app import app
from tigranet.data import REGISTRY
from warm_process import COMMAND_LINE

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = [
    README,
    *PAGES,
    ROOT / "docs" / "reference" / "index.md",
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "results/README.md", "results/figures/README.md")),
    ROOT / "examples" / "browser" / "README.md",
    *sorted((ROOT / "src" / "tigranet" / "weights").glob("*/README.md")),
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHORTENED = {
    "tigranet train my_images/": "tigranet train my_images/ --epochs 1",
    "tigranet report model/ my_images/": "tigranet report model/ my_images/ --images 10",
    "--folds 5 --epochs 40": "--folds 2 --epochs 1",
    "tigranet bench paper-small": "tigranet bench paper-small --batch 4",
}
"""Parts of commands that take long, and what runs instead. ``make demo`` shows the result of the full training."""
END_OF_BLOCK = "--- end of block ---"


PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
PLAIN_COMMAND = re.compile(r"""tigranet ([^|&;<>$*?`()#\\"'~]|"[^"$`\\]*")+""")
"""A command in which the shell would only remove quotes, so that it adds nothing but the start of Python."""


@pytest.fixture
def python(warm_process, tmp_path):
    """Run Python code, or a command of the shell, in an empty folder and return what it prints."""

    def run(code: str, *arguments: str) -> str:
        result = warm_process.run(code, *arguments, folder=tmp_path, environment={"PATH": PATH, "COLUMNS": "100"})
        assert result.returncode == 0, (code, arguments, result.stderr)
        return result.stdout

    return run


def run_line(line: str, python: Callable[..., str]) -> str:
    """Run a line of the shell and return what it prints."""
    if PLAIN_COMMAND.fullmatch(line):
        return python(COMMAND_LINE, *shlex.split(line)[1:])
    return python("import subprocess, sys; sys.exit(subprocess.run(['bash', '-c', sys.argv[1]]).returncode)", line)


def blocks_of(page: Path) -> list[tuple[str, str, str]]:
    """Return the language, the code and the documented output of each block that runs."""
    blocks: list[tuple[str, str, str]] = []
    for language, content in BLOCK.findall(page.read_text()):
        if language in ("python", "bash"):
            blocks.append((language, content, ""))
        elif language == "text":
            assert blocks, f"{page.name} shows output before the first block that runs"
            blocks[-1] = (*blocks[-1][:2], content)
    return blocks


def shape(text: str) -> list[str]:
    """Return the lines without the lines of tables, with ``#`` for every number and single spaces.

    Numbers depend on the training; words, columns and the order of the lines do not.
    """
    words = re.sub(r"[\u2500-\u257f]", " ", text)
    numbers = re.sub(r"-?\d+(?:[.,]\d+)*(?:e-?\d+)?", "#", words)
    return [" ".join(line.split()) for line in numbers.splitlines() if line.strip()]


def assert_prints(actual: str, documented: str) -> None:
    """Check that the documented lines are printed, in this order, among others."""
    remaining = iter(shape(actual))
    for line in shape(documented):
        assert line in remaining, f"{line!r} is documented, but not printed in this order:\n{actual}"


def contents(path: Path) -> dict[Path, tuple[int, int]]:
    """Return the size and the time of change of a file, or of every file in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {file: (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


def run_command(line: str, documented: str, folder: Path, python: Callable[..., str]) -> str:
    """Run a line of a ``bash`` block. It writes to its output paths or prints, and prints what the page shows."""
    targets = [folder / path for path in re.findall(r"(?:-o|--output|--csv|--parquet) (\S+)", line)]
    before = [contents(target) for target in targets]
    shortened = line
    for long, short in SHORTENED.items():
        shortened = shortened.replace(long, short)
    printed = run_line(shortened, python)
    for target, files in zip(targets, before, strict=True):
        written = {file: stat for file, stat in contents(target).items() if files.get(file) != stat}
        assert written, f"'{line}' writes nothing to '{target.name}'"
        assert all(size > 0 for size, _ in written.values()), f"'{line}' writes an empty file: {written}"
    assert targets or printed, f"'{line}' neither writes nor prints"
    assert_prints(printed, documented)
    return printed


def run_python(blocks: list[tuple[str, str]], python: Callable[..., str]) -> None:
    """Run Python blocks as one program: each prints what the page shows, and nothing that it does not show."""
    program = "".join(f"{code}\nprint({END_OF_BLOCK!r})\n" for code, _ in blocks)
    printed = python(program).split(f"{END_OF_BLOCK}\n")
    for (code, documented), actual in zip(blocks, printed[:-1], strict=True):
        assert shape(actual) == shape(documented), code


def check_your_images(printed: str, folder: Path) -> None:
    images = {str(path.relative_to(folder)) for path in (folder / "my_images").rglob("*.png")}
    assert len(images) == 100
    for name in ("config.json", "model.safetensors", "README.md", "training.json", "rotated.png"):
        assert (folder / "model" / name).stat().st_size, name
    assert "</html>" in (folder / "report" / "report.html").read_text()
    with open(folder / "answers.csv") as file:
        answers = list(csv.DictReader(file))
    assert {row["path"] for row in answers} == images
    assert list(answers[0]) == ["path", "label", "probability", "novelty"]
    for row in answers:
        is_known = float(row["probability"]) >= 0.9 and float(row["novelty"]) <= 1
        assert row["label"].startswith("digit ") if is_known else row["label"] == "unknown"
    with open(folder / "features.csv") as file:
        assert {row["path"] for row in csv.DictReader(file)} == images


def check_paper(printed: str, folder: Path) -> None:
    rows = re.findall(r"^\| (`.+?) \|", (ROOT / "docs" / "paper.md").read_text(), re.MULTILINE)
    names = {name for row in rows for name in re.findall("`(.+?)`", row)}
    assert names == set(REGISTRY) == set(re.findall(r"^│ (\S+)", printed, re.MULTILINE))


def check_reproducing(printed: str, folder: Path) -> None:
    written = {path.name for path in (folder / "measured").iterdir()}
    assert {f"{table}-quick.{kind}" for table in ("table2", "few") for kind in ("jsonl", "csv", "md")} <= written
    assert {"few-quick.png", "few-quick.svg"} <= written
    figures = re.findall(r"^\| `(\S+)` \| Fig", (ROOT / "docs" / "reproducing.md").read_text(), re.MULTILINE)
    assert {path.name for path in (folder / "figures").iterdir()} == {
        f"{f}.{kind}" for f in figures for kind in ("png", "svg")
    }


def check_oriented(printed: str, folder: Path) -> None:
    with open(folder / "angles" / "angles.csv") as file:
        rows = list(csv.DictReader(file))
    assert {row["network"] for row in rows} == {"paper-mnist-012", "oriented-small"}
    assert {float(row["degrees"]) for row in rows} == set(range(0, 361, 30))
    assert (folder / "angles" / "angles.png").stat().st_size > 10_000


def check_python_workflows(printed: str, folder: Path) -> None:
    assert TIGraNet.from_pretrained(folder / "model").class_names == ("0", "1", "2")


def check_nothing(printed: str, folder: Path) -> None:
    """The page's own assertions and its documented output are the check."""


def check_explanations(printed: str, folder: Path) -> None:
    with open(folder / "why" / "evidence.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["path"] for row in rows] == ["digit.png", "rotated.png"]
    assert all((folder / "why" / row["picture"]).stat().st_size > 500 for row in rows)


def check_export(printed: str, folder: Path) -> None:
    sizes = {name: (folder / f"{name}.onnx").stat().st_size for name in ("digits", "small")}
    assert sizes["small"] < 0.7 * sizes["digits"]
    (first, second) = re.findall(r"from PyTorch: (\S+)", printed)
    assert max(float(first), float(second)) < 1e-4


def check_engines(printed: str, folder: Path) -> None:
    manifest = json.loads((folder / "answers" / "_manifest.json").read_text())
    assert (manifest["images"], manifest["unreadable"], len(manifest["parts"])) == (21, 1, 3)


def check_fine_tuning(printed: str, folder: Path) -> None:
    assert TIGraNet.from_pretrained(folder / "tuned").class_names == ("0", "1", "2")


def check_train_from_shards(printed: str, folder: Path) -> None:
    assert "40 images of 2 classes in 3 shards" in printed
    manifest = json.loads((folder / "shards" / "shards.json").read_text())
    assert [entry["path"] for entry in manifest["unreadable"]] == ["dark/broken.png"]


def check_suggestions(printed: str, folder: Path) -> None:
    assert "10 images to label, chosen from 100" in printed
    with open(folder / "suggestions" / "suggestions.csv") as file:
        assert len(list(csv.DictReader(file))) == 10
    with open(folder / "suggestions" / "suspicious_labels.csv") as file:
        assert any(row["path"].endswith("001.png") for row in csv.DictReader(file))
    assert "</html>" in (folder / "suggestions" / "suggestions.html").read_text()


PAGE_CHECKS = {
    "choosing-a-network": check_nothing,
    "engines": check_engines,
    "explanations": check_explanations,
    "guarantees": check_nothing,
    "export": check_export,
    "fine-tuning": check_fine_tuning,
    "half-precision": check_nothing,
    "how-it-works": check_nothing,
    "install": check_nothing,
    "oriented": check_oriented,
    "paper": check_paper,
    "pyramids": check_nothing,
    "python-workflows": check_python_workflows,
    "pytorch": check_nothing,
    "reproducing": check_reproducing,
    "scikit-learn": check_nothing,
    "serving": check_nothing,
    "train-from-shards": check_train_from_shards,
    "unknown-images": check_nothing,
    "suggestions": check_suggestions,
    "your-images": check_your_images,
}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.stem)
def test_a_page_runs_as_written(page, tmp_path, python):
    check = PAGE_CHECKS[page.stem]
    program: list[tuple[str, str]] = []
    printed = ""
    for language, code, documented in [*blocks_of(page), ("end", "", "")]:
        if language == "python":
            program.append((code, documented))
            continue
        if program:
            run_python(program, python)
            program = []
        for line in code.splitlines():
            printed += run_command(line, documented, tmp_path, python)
    check(printed, tmp_path)


@pytest.mark.parametrize(
    ("documented", "printed"),
    [
        ("│ upright │ 93.3 │", "│ rotated │ 93.3 │"),
        ("first 1\nsecond 2", "second 2\nfirst 1"),
        ("accuracy: 79 %", ""),
    ],
    ids=["another word", "another order", "nothing printed"],
)
def test_output_that_differs_from_the_page_is_found(documented, printed):
    assert_prints(documented, documented)
    with pytest.raises(AssertionError, match="documented, but not printed"):
        assert_prints(printed, documented)


def check_train_on_a_folder(printed: str, folder: Path) -> None:
    movements = dict(re.findall(r"^(.+): (\d[\d.]*)(?: ± [\d.]+)? %$", printed, re.MULTILINE))
    assert {"as they are", "turned by 90 degrees", "rotated"} <= set(movements)
    assert movements["as they are"] == movements["turned by 90 degrees"]
    assert TIGraNet.from_pretrained(folder / "trained").class_names == ("a", "b")


def check_filters_over_the_spectrum(printed: str, folder: Path) -> None:
    picture = (folder / "filters.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def check_oriented_pictures(printed: str, folder: Path) -> None:
    """The pictures of docs/oriented.md are drawn, and the table printed is the one shown there."""
    page = (ROOT / "docs" / "oriented.md").read_text()
    shown = re.findall(r"images/(oriented-\w+\.png)", page)
    assert sorted(path.name for path in (folder / "images").iterdir()) == sorted(shown)
    (table,) = re.findall(r"^\| relative change of the logits .*?\n\n", page, re.DOTALL | re.MULTILINE)
    assert shape(printed) == shape(table)
    values, expected = ([float(cell) for cell in re.findall(r"\b0\.\d{3}\b", text)] for text in (printed, table))
    assert values == pytest.approx(expected, abs=0.0021)  # rounding differs from machine to machine


def check_sort_into_folders(printed: str, folder: Path) -> None:
    counts = {label: int(count) for label, count in re.findall(r"^(\S+): (\d+)$", printed, re.MULTILINE)}
    files = [path for path in (folder / "sorted").rglob("*") if path.is_file()]
    assert counts == {path.name: len(list(path.iterdir())) for path in (folder / "sorted").iterdir()}
    assert len(files) == 24


def check_rotated_photographs(printed: str, folder: Path) -> None:
    """One photograph per class is rotated by every angle, and a picture of all of them is written."""
    assert re.search(r"^2 photographs at 9 angles: \d+ of 18 predictions are right$", printed, re.MULTILINE)
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")


EXAMPLE_RUNS = {
    "train_on_a_folder": (["photos", "trained", "2"], check_train_on_a_folder),
    "filters_over_the_spectrum": (["filters.png"], check_filters_over_the_spectrum),
    "oriented_pictures": (["images"], check_oriented_pictures),
    "rotated_photographs": (["photos", "picture.png", "model"], check_rotated_photographs),
    "sort_into_folders": (["model", "photos", "sorted"], check_sort_into_folders),
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_and_writes_what_it_promises(example, tmp_path, python):
    fill(tmp_path / "photos", {"a": 12, "b": 12})
    TIGraNet("SC[2,2]-S[2]", 2, class_names=["a", "b"], image_size=12).save_pretrained(tmp_path / "model")
    arguments, check = EXAMPLE_RUNS[example.stem]
    check(python(example.read_text(), *arguments), tmp_path)


@pytest.mark.parametrize(
    "line", ["tigranet evaluate no-such-model/ mnist-012", "tigranet data list | grep no-such-data"]
)
def test_a_command_that_fails_is_found(line, python):
    with pytest.raises(AssertionError, match="no-such-"):
        run_line(line, python)


def test_a_program_has_its_own_folder_arguments_and_environment(python, tmp_path):
    program = (
        "import os, sys; os.mkdir('made'); print(sys.argv[1:], os.environ['COLUMNS']); os.environ['COLUMNS'] = '7'"
    )
    assert python(program, "a b", "c") == "['a b', 'c'] 100\n"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert python("import os; print(os.environ['COLUMNS'])") == "100\n"
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        python("1 / 0")


def test_a_program_that_hangs_is_stopped(warm_process):
    with pytest.raises(subprocess.TimeoutExpired, match="timed out"):
        warm_process.run("import time; time.sleep(60)", timeout=0.1)


def test_the_shell_starts_the_installed_command():
    """The other tests of this file call the function of the command in a process that is already running."""
    command = ["bash", "-c", "tigranet data --help"]
    result = subprocess.run(command, env=os.environ | {"PATH": PATH}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "tigranet data" in result.stdout


def commands_in(document: Path) -> set[str]:
    """Return every ``tigranet`` command in the code of a document, without comments and placeholders."""
    text = document.read_text().replace("$seed", "0").replace("--seed S", "--seed 0")
    code = [line for language, block in BLOCK.findall(text) if language != "python" for line in block.splitlines()]
    code += re.findall(r"^ {4}(.+)$", text, re.MULTILINE) + re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    commands = (re.search(r"(?:^| )(tigranet [^#|&;]+)", line) for line in code)
    return {command[1].strip() for command in commands if command}


def parse(command: str) -> None:
    """Let the command line parse a command, without running it."""
    group = typer.main.get_command(app)

    def stub(node):
        node.callback = lambda **options: None
        for child in getattr(node, "commands", {}).values():
            stub(child)

    stub(group)
    arguments = shlex.split(command)[1:]
    if len(arguments) == 1:  # a command that the text only names
        arguments.append("--help")
    group.main(arguments, "tigranet", standalone_mode=False)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_command_line_accepts_every_command_of_a_document(document):
    for command in commands_in(document):
        try:
            parse(command)
        except Exception as error:
            pytest.fail(f"{document.name}: '{command}': {error}")


def test_commands_are_found_in_blocks_in_tables_and_in_text():
    readme = {"tigranet export", "tigranet reproduce few", "tigranet train my_images/ -o model/"}
    assert readme <= commands_in(README)
    assert "tigranet bench oriented --size 28" in commands_in(ROOT / "docs" / "oriented.md")
    assert "tigranet reproduce table3 --seed 0" in commands_in(ROOT / "docs" / "reproducing.md")
    figures = commands_in(ROOT / "results" / "figures" / "README.md")
    assert "tigranet figures model/ mnist-012 -o results/figures/three-layers" in figures


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("tigranet learn photos/", "learn"),
        ("tigranet learn", "learn"),
        ("tigranet evaluate model/ --json", "data"),
        ("tigranet bench oriented --sides 28", "--sides"),
        ("tigranet bench oriented --size large", "integer"),
    ],
)
def test_a_wrong_command_is_refused(command, reason):
    with pytest.raises(Exception, match=reason):
        parse(command)


def test_the_commands_of_the_readme_for_own_images_run_on_their_page():
    assert [language for language, _, _ in blocks_of(README)] == ["python"]
    blocks = blocks_of(ROOT / "docs" / "your-images.md")
    lines = {line for language, code, _ in blocks if language == "bash" for line in code.splitlines()}
    for document in (README, ROOT / "docs" / "index.md"):
        commands = {command for command in commands_in(document) if "my_images/" in command}
        assert len(commands) == 4
        assert commands <= lines


def anchors_of(document: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(document):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", document.read_text()):
        if target.startswith("https://") or target.endswith(".rst"):  # Sphinx checks those of the reference
            continue
        linked = document.parent / target if target else document
        assert linked.exists(), (document.name, target)
        assert not anchor or anchor in anchors_of(linked), (document.name, target, anchor)


def test_every_page_is_in_the_table_of_contents_of_the_site():
    """Sphinx says so too, but a page that is missing in a table of contents is easier to find here."""
    contents = "\n".join(
        block
        for document in [*DOCUMENTS, *PAGES]
        for language, block in BLOCK.findall(document.read_text())
        if language == "{toctree}"
    )
    listed = {re.sub(r".*<(.+)>", r"\1", line).strip() for line in contents.splitlines()}
    assert {page.stem for page in PAGES} - {"index"} <= listed


def test_the_guide_names_every_page_in_its_order():
    """The table of a page with a table of contents has the same pages in the same order."""
    for page in (ROOT / "docs" / name for name in ("guide.md", "deployment.md")):
        text = page.read_text()
        (contents,) = (block for language, block in BLOCK.findall(text) if language == "{toctree}")
        table = re.findall(r"^\| \[.+?\]\((.+?)\.md\)", text, re.MULTILINE)
        assert table == [line for line in contents.splitlines() if line and not line.startswith(":")]
