"""Every command that reads files, with hostile files of every kind: exit code, one-line reason, time and memory.

The files are built byte by byte. Each test runs the commands of one category in processes that are forked from one that
has imported the packages.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest

from hostile import archives, image_files, model_folders, npz_files, special_files, tables
from hostile.case import Case, Finished, problems
from images import fill

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does, and makes device nodes")

TINY = ("--epochs", "1", "--size", "8", "--architecture", "SC[2,1]-S[1]")
"""Options of a training that takes no time."""


@pytest.fixture
def folder():
    """A new folder that every user may read, unlike the temporary folders of pytest."""
    path = Path(tempfile.mkdtemp(prefix="hostile-"))
    path.chmod(0o755)
    yield path
    for entry in path.rglob("*"):
        if not entry.is_symlink() and entry.is_dir():
            entry.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture
def model(folder):
    return model_folders.save_good_model(folder / "model")


@pytest.fixture
def photos(folder):
    return fill(folder / "photos", dict.fromkeys("abc", 8), size=(8, 8))


def data_commands(data: Path, model: Path, output: Path) -> list[tuple[str, ...]]:
    """Return the arguments of every command that reads labelled images."""
    output = output / data.name
    return [
        ("load_user_data", str(data)),
        ("train", str(data), "-o", f"{output}-model", *TINY),
        ("evaluate", str(model), str(data)),
        ("report", str(model), str(data), "-o", f"{output}-report", "--no-cnn", "--images", "2"),
        ("angles", str(data), str(model), "-o", f"{output}-angles", "--by", "90", "--images", "2"),
        ("figures", str(model), str(data), "-o", f"{output}-figures"),
    ]


def model_commands(model: Path, photos: Path, output: Path) -> list[tuple[str, ...]]:
    """Return the arguments of every command that reads a model."""
    image, output = photos / "a" / "000.png", output / model.name
    return [
        ("from_pretrained", str(model)),
        ("predict", str(model), str(image)),
        ("features", str(model), str(image)),
        *data_commands(photos, model, output)[2:],
    ]


@pytest.fixture(scope="session")
def runner():
    """The process that runs the cases."""
    tests = str(Path(__file__).parent.parent)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")])),
        "TIGRANET_KERNELS": "plain",  # compiling kernels takes longer than all cases
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "200",
    }
    command = [sys.executable, "-m", "hostile.runner"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()
    assert process.returncode == 0


@pytest.fixture
def check(runner, folder):
    """A function that runs cases, each in a process of its own, and fails with a list of all that went wrong."""
    cache = folder / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    options = {"folder": str(folder), "environment": {"TIGRANET_CACHE": str(cache)}}

    def run(case: Case, environment: dict[str, str]) -> Finished:
        request = asdict(case) | options | {"environment": options["environment"] | environment}
        runner.stdin.write(json.dumps(request) + "\n")
        runner.stdin.flush()
        return Finished(**json.loads(runner.stdout.readline()))

    def check_all(cases: list[Case], **environment: str) -> None:
        assert len({case.title for case in cases}) == len(cases)
        report = []
        for case in cases:
            result = run(case, environment)
            report += [
                f"{case.title}: {difference}\n    {result.err.strip()[-300:]}" for difference in problems(case, result)
            ]
            _record(case, result)
        assert not report, f"{len(report)} problems:\n" + "\n".join(report)

    return check_all


def _record(case: Case, result: Finished) -> None:
    """Append what a case took to a file, if the environment names one."""
    if path := os.environ.get("TIGRANET_HOSTILE_RECORD"):
        with open(path, "a") as file:
            file.write(
                f"{result.seconds:.2f} s  {result.megabytes:.0f} MB  {case.title}  {result.code}  {result.err!r}\n"
            )


def write_image_files(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files to a new folder, and add the named pipe that one of them refers to."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe.tif")
    return folder


def test_unreadable_image_files(check, folder, model):
    files = image_files.unreadable_images()
    images = write_image_files(folder / "images", files)
    cases = [
        Case(name, ("predict", str(model), str(images / name)), "refused", (name,))
        for name in (*image_files.false_headers(), "pipe.tif")
    ]
    everything = tuple(files)
    cases += [
        Case("all together", ("predict", str(model), str(images)), "refused", everything),
        Case("all together", ("features", str(model), str(images)), "refused", everything),
        Case("all together", ("suggest", str(model), str(images), "-o", str(folder / "page")), "refused", everything),
    ]
    check(cases)


def test_image_files_at_the_limits(check, folder, model):
    files = image_files.any_images()
    images = write_image_files(folder / "images", files)
    for number in range(4):
        (images / f"gigabytes-{number}.tif").write_bytes(image_files.huge_tiff(12_000))
    cases = [Case(name, ("predict", str(model), str(images / name)), "any") for name in files]
    cases.append(Case("all together", ("predict", str(model), str(images)), "left out"))
    check(cases)


def test_no_other_program_decodes_images(check, folder, model):
    """Pillow gives PostScript to the program gs, so one is put first in the search path that leaves a trace."""
    trace, programs = folder / "trace", folder / "programs"
    programs.mkdir()
    for name in ("gs", "gswin32c", "gswin64c"):
        (programs / name).write_text(f"#!/bin/sh\ntouch {trace}\n")
        (programs / name).chmod(0o755)
    files = {
        name: content for name, content in image_files.unreadable_images().items() if name.startswith("postscript")
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    cases = [Case(name, ("predict", str(model), str(folder / name)), "refused", (name,)) for name in files]
    check(cases, PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    assert files
    assert not trace.exists()


def test_hostile_files_among_good_ones(check, folder, model, photos):
    """The hostile files are left out and named, and the good ones are used."""
    names = list(image_files.unreadable_images())
    for name, content in image_files.unreadable_images().items():
        (photos / "b" / name).write_bytes(content)
    names += special_files.add_special_files(photos / "a")
    special_files.add_odd_entries(photos / "c")
    special_files.add_broken_files_with_odd_names(photos / "c")
    cases = [
        Case("hostile files in a folder", arguments, "left out", tuple(names))
        for arguments in [
            *data_commands(photos, model, folder),
            ("predict", str(model), str(photos)),
            ("features", str(model), str(photos)),
            ("suggest", str(model), str(photos), "-o", str(folder / "page"), "--train", str(photos)),
        ]
    ]
    check(cases)


def test_special_files_in_place_of_data(check, folder, model):
    special = folder / "special"
    special.mkdir()
    names = special_files.add_special_files(special)
    paths = [special / name for name in names]
    cases = [Case(path.name, ("predict", str(model), str(path)), "refused", (path.name,)) for path in paths]
    cases += [Case(path.name, ("from_pretrained", str(path)), "refused", (path.name,)) for path in paths]
    cases += [Case(path.name, ("train", str(path), "--overwrite", *TINY), "refused", (path.name,)) for path in paths]
    check(cases)


def test_folders_and_files_without_permission(check, folder, model, photos):
    """One folder that may not be listed and one file that may not be read are named, and stop nothing."""
    (photos / "a" / "000.png").chmod(0)
    locked = photos / "b" / "locked"
    locked.mkdir(mode=0)
    hidden = fill(folder / "hidden", dict.fromkeys("abc", 2))
    hidden.chmod(stat.S_IXUSR)
    output = folder / "output"
    output.mkdir()
    output.chmod(0o777)
    mentions = ("000.png", "locked")
    cases = [
        Case("no permission", arguments, "left out", mentions, unprivileged=True)
        for arguments in [
            *data_commands(photos, model, output),
            ("predict", str(model), str(photos)),
            ("suggest", str(model), str(photos), "-o", str(output / "page")),
        ]
    ]
    cases += [
        Case("folder without permission", arguments, "refused", ("hidden",), unprivileged=True)
        for arguments in [("train", str(hidden), "-o", str(output / "m"), *TINY), ("predict", str(model), str(hidden))]
    ]
    check(cases)


def test_tables(check, folder, model):
    fill(folder / "images", dict.fromkeys("abc", 6), size=(8, 8))
    cases = []
    for name, (content, mention) in tables.refused_tables().items():
        table = folder / f"{name}.csv"
        table.write_bytes(content)
        cases += [
            Case(name, arguments, "refused", (table.name, mention) if mention else (table.name,))
            for arguments in data_commands(table, model, folder)[: None if len(cases) < 12 else 2]
        ]
    for name, (content, mention) in tables.tables_of_bad_files().items():
        table = folder / f"{name}.csv"
        table.write_bytes(content)
        cases += [Case(name, arguments, "refused", (mention,)) for arguments in data_commands(table, model, folder)[:3]]
        suggest = ("suggest", str(model), str(folder / "images"), "-o", str(folder / "page"), "--train", str(table))
        cases.append(Case(name, suggest, "any"))
    for table in tables.write_special_tables(folder):
        cases += [
            Case(table.stem, arguments, "refused", (table.name,))
            for arguments in data_commands(table, model, folder)[:3]
        ]
    for name, content in tables.any_tables().items():
        table = folder / f"{name}.csv"
        table.write_bytes(content)
        cases += [Case(name, arguments, "any") for arguments in data_commands(table, model, folder)[:1]]
    formulas = folder / "formulas.csv"
    cases.append(Case("formulas", data_commands(formulas, model, folder)[1], "used"))
    check(cases)


def test_array_files(check, folder, model):
    marker = folder / "unpickled"
    cases = []
    for name, content in npz_files.refused_arrays(marker).items():
        file = folder / f"{name}.npz"
        file.write_bytes(content)
        cases += [
            Case(name, arguments, "refused", (file.name,))
            for arguments in data_commands(file, model, folder)[: None if len(cases) < 12 else 2]
        ]
    for file in [*npz_files.write_special_arrays(folder), *npz_files.write_bombs(folder).values()]:
        cases += [
            Case(file.stem, arguments, "refused", (file.name,)) for arguments in data_commands(file, model, folder)[:3]
        ]
    for name, content in npz_files.any_arrays().items():
        file = folder / f"{name}.npz"
        file.write_bytes(content)
        cases += [Case(name, arguments, "any") for arguments in data_commands(file, model, folder)[:1]]
    unused = npz_files.write_unused_bomb(folder)
    cases.append(Case("unused.npz", ("load_user_data", str(unused)), "used", extra_megabytes=200))
    check(cases)
    assert not marker.exists()


def test_archives_and_lists_to_classify(check, folder, model, photos):
    """Archives are not unpacked, and no name in them or in a list is more than a name."""
    cases = []
    for name, content in archives.refused_archives().items():
        (folder / f"{name}.zip").write_bytes(content)
        words = () if name in ("only-end", "no-images") else (f"{name}.zip",)
        cases.append(Case(f"{name}.zip", ("predict", str(model), f"{name}.zip"), "refused", words))
    for path in [*archives.write_special_archives(folder), *archives.write_bomb_archives(folder)]:
        cases.append(Case(path.name, ("predict", str(model), path.name), "refused", (path.name,), extra_megabytes=700))
    for name, content in archives.any_archives().items():
        (folder / f"{name}.zip").write_bytes(content)
        cases.append(Case(f"{name}.zip", ("predict", str(model), f"{name}.zip"), "used"))
    for name, content in archives.refused_lists().items():
        (folder / f"{name}.txt").write_bytes(content)
        cases.append(Case(f"{name}.txt", ("predict", str(model), f"{name}.txt"), "refused", seconds=5))
    for path in archives.write_special_lists(folder):
        cases.append(Case(path.name, ("predict", str(model), path.name), "refused", (path.name,)))
    everything = sorted(path.name for path in folder.iterdir() if path.suffix in (".zip", ".txt"))
    cases.append(Case("all together", ("predict", str(model), *everything, str(photos)), "left out", ("one-bomb.zip",)))

    def files() -> list[Path]:
        return sorted(path for path in folder.rglob("*") if "cache" not in path.parts)

    before = files()
    check(cases)
    assert files() == before


def test_tables_and_arrays_to_classify(check, folder, model):
    fill(folder / "images", dict.fromkeys("abc", 6), size=(8, 8))
    marker = folder / "unpickled"
    cases = []
    for number, (name, (content, _)) in enumerate(tables.refused_tables().items()):
        (folder / f"{name}.csv").write_bytes(content)
        if number % 2 == 0:
            cases.append(Case(f"{name}.csv", ("predict", str(model), f"{name}.csv"), "any"))
    for path in tables.write_special_tables(folder):
        cases.append(Case(path.name, ("predict", str(model), path.name), "refused", (path.name,)))
    refused = (
        "objects",
        "encrypted",
        "terabyte-in-header",
        "nested-header",
        "nan-pixels",
        "channels-first",
        "truncated",
    )
    for name, content in npz_files.refused_arrays(marker).items():
        (folder / f"{name}.npz").write_bytes(content)
        if name in refused:
            outcome = "any" if name == "objects" else "refused"
            cases.append(Case(f"{name}.npz", ("predict", str(model), f"{name}.npz"), outcome))
    for path in npz_files.write_bombs(folder).values():
        outcome = "refused" if path.stem == "images" else "any"
        cases.append(Case(path.name, ("predict", str(model), path.name), outcome, extra_megabytes=700))
    check(cases)
    assert not marker.exists()


def test_model_folders(check, folder, model, photos):
    """A folder is refused before a network is built: within seconds, and with little memory."""
    marker, models = folder / "unpickled", folder / "models"
    models.mkdir()
    cases = []
    for number, path in enumerate(model_folders.hostile_models(model, models, marker)):
        commands = model_commands(path, photos, folder)
        cases += [
            Case(path.name, arguments, "refused", (path.name,), seconds=2, extra_megabytes=200)
            for arguments in (commands if number % 30 == 0 else commands[: 1 + (number % 3 == 0)])
        ]
    check(cases)
    assert not marker.exists()


def test_detectors_of_unknown_images(check, folder, model, photos):
    models = folder / "models"
    models.mkdir()
    image = str(photos / "a" / "000.png")
    cases = []
    for path in model_folders.hostile_detectors(model, models):
        outcome = "used" if path.name.endswith("itself") else "refused"  # a link to itself is no file
        mentions = ("unknown.safetensors",) if outcome == "refused" else ()
        cases.append(Case(path.name, ("predict", str(path), image), outcome, mentions, seconds=2, extra_megabytes=200))
        cases.append(Case(f"{path.name}, off", ("predict", str(path), image, "--unknown", "off"), "used"))
    check(cases)


def test_records_of_trainings(check, folder, model, photos):
    models = folder / "models"
    models.mkdir()
    cases = []
    for number, path in enumerate(model_folders.hostile_records(model, models)):
        commands = model_commands(path, photos, folder)
        outcome = "any" if "-is-" in path.name else "refused"
        mentions = () if outcome == "any" else (model_folders.TRAINING,)
        cases += [
            Case(path.name, arguments, outcome, mentions)
            for arguments in (commands[3:] if number % 5 == 0 else commands[3:4])
        ]
    cases.append(
        Case(
            "record of hashes",
            ("suggest", str(models / "record-empty"), str(photos), "-o", str(folder / "page")),
            "refused",
            (model_folders.TRAINING,),
        )
    )
    cases.append(
        Case("record not used", ("predict", str(models / "record-empty"), str(photos / "a" / "000.png")), "used")
    )
    check(cases)


def test_checkpoints(check, folder, photos):
    marker, outputs = folder / "unpickled", folder / "outputs"
    outputs.mkdir()
    paths = list(model_folders.hostile_checkpoints(outputs, marker))
    cases = [
        Case(path.name, ("train", str(photos), "-o", str(path), "--resume", *TINY), "refused", (path.name, "last.ckpt"))
        for path in paths
    ]
    check(cases)
    assert not marker.exists()


def test_the_output_folder_is_not_the_data(check, folder, photos):
    before = sorted(photos.rglob("*"))
    check([Case("output is input", ("train", str(photos), "-o", str(photos), *TINY), "refused", ("photos",))])
    assert sorted(photos.rglob("*")) == before
