import csv
import io
import json
import os
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from images import fill
from tigranet import TIGraNet
from tigranet.evaluation.conformal import ConformalCalibration
from tigranet.workflows.model_calibration import ModelCalibration, write_calibration
from zip_files import write_zip


@pytest.fixture
def model(tmp_path):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("command", ["predict", "features"])
def test_no_rows_are_an_error_and_an_existing_file_stays(tigranet, tmp_path, model, command):
    table, empty = tmp_path / "table.csv", tmp_path / "empty"
    table.write_text("precious")
    empty.mkdir()
    (tmp_path / "broken.png").touch()
    for images, words in (
        (tmp_path / "nosuch.png", f"'{tmp_path / 'nosuch.png'}'"),
        (empty, "there are no images"),
        (tmp_path / "broken.png", "none of the images"),
    ):
        code, _, err = tigranet(command, model, images, "--csv", table)
        assert code == 1
        assert words in err
        assert table.read_text() == "precious"


def test_unreadable_files_are_listed_even_if_there_are_no_others(tigranet, tmp_path, model):
    (tmp_path / "broken.png").touch()
    _, _, err = tigranet("predict", model, tmp_path / "broken.png")
    assert "broken.png: the file is empty" in err.replace("\n", "")


def test_a_table_that_cannot_be_written_is_found_before_the_work(tigranet, tmp_path, model, photos):
    command = ("predict", model, photos)
    code, _, err = tigranet(*command, "--csv", tmp_path)
    assert (code, f"'{tmp_path}'" in err, "folder" in err) == (1, True, True)
    code, _, err = tigranet(*command, "--csv", tmp_path / "a.csv", "--json")
    assert (code, "--csv, --parquet and --json" in err) == (1, True)
    assert not (tmp_path / "a.csv").exists()


def test_parquet(tigranet, tmp_path, model, photos):
    import pyarrow.parquet as pq

    out = tmp_path / "out.parquet"
    tigranet("predict", model, photos, "--parquet", out)
    table = pq.read_table(out)
    assert table.column_names == ["path", "label", "probability"]
    assert table.num_rows == 40


def calibrate(model, scores=30):
    calibration = ModelCalibration(ConformalCalibration(scores, tuple(1 + number / 100 for number in range(scores))))
    write_calibration(model, TIGraNet.from_pretrained(model), calibration)


def test_label_sets_are_a_column_in_every_format(tigranet, tmp_path, model, photos):
    import pyarrow.parquet as pq

    calibrate(model)
    command = ("predict", model, photos, "--coverage", "0.9")
    code, out, err = tigranet(*command, "--json")
    assert (code, "validation images" in err) == (0, False)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [list(row) for row in rows] == [["path", "label", "probability", "labels"]] * 40
    assert all(row["labels"][0] == row["label"] for row in rows)
    tigranet(*command, "--csv", tmp_path / "a.csv")
    with open(tmp_path / "a.csv") as file:
        table = list(csv.DictReader(file))
    assert [json.loads(row["labels"]) for row in table] == [row["labels"] for row in rows]
    tigranet(*command, "--parquet", tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["labels"].to_pylist() == [row["labels"] for row in table]


def test_too_few_images_for_the_coverage_are_reported_and_an_uncalibrated_model_is_refused(tigranet, model, photos):
    code, _, err = tigranet("predict", model, photos, "--coverage", "0.9")
    assert (code, "tigranet calibrate" in err) == (1, True)
    calibrate(model)
    code, out, err = tigranet("predict", model, photos, "--coverage", "0.99", "--json")
    assert code == 0
    assert "needs at least 99 validation images, the model was calibrated on 30 images" in " ".join(err.split())
    assert {tuple(sorted(json.loads(line)["labels"])) for line in out.splitlines()} == {("0", "1", "2")}
    code, _, err = tigranet("predict", model, photos, "--coverage", "95")
    assert (code, "between 0 and 1" in err) == (1, True)


def test_explanations_are_written_beside_the_rows(tigranet, tmp_path, model, photos):
    calibrate(model)
    code, out, err = tigranet("predict", model, photos, "--explain", tmp_path / "why", "--coverage", "0.5")
    assert code == 0
    assert out == tigranet("predict", model, photos, "--coverage", "0.5").out
    assert "broken.png" in err
    written = sorted(path.suffix for path in (tmp_path / "why").iterdir())
    assert written == [".csv", *[".png"] * 40]
    code, _, err = tigranet("predict", model, photos, "--explain", photos)
    assert (code, "folder of the images" in err) == (1, True)


def test_a_file_name_that_is_not_utf_8_is_printed_as_it_is(warm_process, tmp_path, model, photos):
    source = next(photos.rglob("[0-9]*.png")).read_bytes()
    name = os.fsencode(tmp_path) + b"/caf\xe9.png"
    with open(name, "wb") as file:
        file.write(source)
    finished = warm_process.tigranet("predict", model, os.fsdecode(name))
    assert finished.returncode == 0, finished.stderr
    assert b"caf\xe9.png" in os.fsencode(finished.stdout)


@pytest.fixture
def bad_files(tmp_path):
    """Thirty good images, bad ones of every kind, and the reason for each bad one by name."""
    folder = fill(tmp_path / "bad", {"a": 15, "b": 15})
    good = (folder / "a" / "000.png").read_bytes()
    jpeg, tiff = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (50, 50), "red").save(jpeg, "JPEG")
    Image.new("L", (50, 50)).save(tiff, "TIFF")
    corrupt = bytearray(good)
    corrupt[60:90] = bytes(30)
    bomb = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Image, "MAX_IMAGE_PIXELS", None)
        Image.new("1", (10_000, 10_000)).save(bomb, "PNG")
    kinds = {
        b"corrupt.png": (bytes(corrupt), "decoded"),
        b"truncated.png": (good[: len(good) // 2], "decoded"),
        b"truncated.jpg": (jpeg.getvalue()[:650], "image file is truncated"),
        b"truncated.tif": (tiff.getvalue()[:300], "decoded"),
        b"empty.png": (good[:8], "not an image"),
        b"zero bytes.png": (b"", "the file is empty"),
        b"bomb.png": (bomb.getvalue(), "64,000,000 pixels"),
        b"text.png": (b"no image at all", "not an image"),
        b"text.tif": (b"no image at all", "not an image"),
        b"caf\xe9.png": (b"no image at all", "not an image"),
        b"a png.tif": (good, ""),  # the content counts, not the suffix
        b"a tiff.jpg": (tiff.getvalue(), ""),
        b"g\xe4nse.png": (good, ""),
    }
    for name, (content, _) in kinds.items():
        with open(os.fsencode(folder / "b") + b"/" + name, "wb") as file:
            file.write(content)
    (folder / "b" / "a folder.png").mkdir()
    return folder, {name: reason for name, (_, reason) in kinds.items()}


def test_bad_files_of_every_kind_are_listed_with_their_reasons_and_stop_nothing(warm_process, tmp_path, bad_files):
    folder, reasons = bad_files
    model, table = tmp_path / "m", tmp_path / "out.csv"
    TIGraNet("SC[2,2]-S[2]", 2, image_size=12).save_pretrained(model)
    predicted = warm_process.tigranet("predict", model, folder, "--csv", table)
    assert predicted.returncode == 0, predicted.stderr
    lines = predicted.stderr.splitlines()
    bad = {name: reason for name, reason in reasons.items() if reason}
    assert lines[0] == f"{len(bad)} files were left out:"
    for name, reason in bad.items():
        shown = name.decode(errors="backslashreplace")
        assert any(f"/b/{shown}: " in line and reason in line for line in lines), (name, lines)
    assert lines[1 + len(bad)] == f"33 images have a prediction, {len(bad)} could not be read"
    assert len(lines) <= 1 + len(bad) + 1 + 2
    written = table.read_bytes()
    assert written.count(b"\n") == 1 + 30 + 3
    for name in reasons.keys() - bad.keys():
        assert name in written
    options = ("--epochs", 1, "--architecture", "SC[2,2]-S[2]", "--overwrite")
    trained = warm_process.tigranet("train", folder, "-o", model, *options)
    assert trained.returncode == 0, trained.stderr
    assert f"{len(bad)} files were left out:" in trained.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes and links are those of Unix")
def test_pipes_and_loops_of_links_are_listed_and_stop_nothing(tigranet, warm_process, tmp_path):
    folder = fill(tmp_path / "photos", {"a": 15, "b": 15})
    os.mkfifo(folder / "a" / "pipe.png")
    os.mkfifo(folder / "000 pipe")
    (folder / "b" / "loop.png").symlink_to("loop.png")
    (folder / "b" / "top").symlink_to("..")
    options = ["-o", tmp_path / "m", "--epochs", 1, "--architecture", "SC[2,2]-S[2]"]
    trained = warm_process.tigranet("train", folder, *options, timeout=120)  # opening a pipe would hang
    outputs = [trained.stderr]
    for command in ("predict", "features"):
        code, out, err = tigranet(command, tmp_path / "m", folder)
        assert (code, len(out.splitlines())) == (0, 1 + 30)
        outputs.append(err)
    assert trained.returncode == 0
    for text in outputs:
        assert "4 files were left out:" in text
        for name in ("a/pipe.png", "000 pipe", "b/loop.png", "b/top"):
            assert f"/{name}: " in text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are those of Unix")
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_device_in_place_of_an_image_is_refused(tigranet, tmp_path, model, kind):
    path = "/dev/zero" if kind == "device" else tmp_path / "pipe.png"
    if kind == "pipe":
        os.mkfifo(path)
    code, _, err = tigranet("predict", model, path)
    assert (code, kind in err, "none of the images" in err) == (1, True, True)


@pytest.mark.parametrize("command", ["predict", "features"])
def test_an_image_without_a_finite_answer_is_listed_and_has_no_row(tigranet, tmp_path, command):
    """The numbers of this network overflow for every image that is not black."""
    net = TIGraNet("SC[2,2]-S[2]", 2, image_size=12)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(1e30)
    net.save_pretrained(tmp_path / "m")
    folder = fill(tmp_path / "photos", {"a": 2})
    Image.new("L", (12, 12)).save(folder / "black.png")
    code, out, err = tigranet(command, tmp_path / "m", folder)
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()] == ["path", str(folder / "black.png")]
    assert "nan" not in out
    for name in ("000.png", "001.png"):
        assert f"{name}: the network gives no finite answer for this image" in err.replace("\n", "")
    code, out, err = tigranet(command, tmp_path / "m", folder / "a")
    assert (code, "none of the images" in err) == (1, True)


def test_the_summary_is_on_stderr_and_the_rows_alone_on_stdout(tigranet, model, photos):
    code, out, err = tigranet("predict", model, photos)
    assert (code, len(out.splitlines())) == (0, 41)
    labels = [row["label"] for row in csv.DictReader(io.StringIO(out))]
    heading = err.splitlines().index("40 images have a prediction, 1 could not be read")
    counts = [line.split()[:2] for line in err.splitlines()[heading + 1 :]]
    assert {label: int(count) for label, count in counts} == {label: labels.count(label) for label in set(labels)}
    assert "prediction" not in tigranet("predict", model, next(photos.rglob("[0-9]*.png"))).err
    assert "unknown  40  100.0 %" in tigranet("predict", model, photos, "--reject", "1").err


def test_top_classes_and_probabilities_are_in_every_format(tigranet, tmp_path, model, photos):
    import pyarrow.parquet as pq

    command = ("predict", model, photos, "--top", "2", "--probabilities")
    code, out, _ = tigranet(*command, "--json")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        assert [list(ranked) for ranked in row["top"]] == [["label", "probability"]] * 2
        assert row["top"][0] == {"label": row["label"], "probability": row["probability"]}
        assert row["probabilities"][row["label"]] == row["probability"] == max(row["probabilities"].values())
    tigranet(*command, "--csv", tmp_path / "a.csv")
    with open(tmp_path / "a.csv") as file:
        table = list(csv.DictReader(file))
    ranked = ["label_1", "probability_1", "label_2", "probability_2"]
    assert list(table[0]) == ["path", "label", "probability", *ranked, "p_0", "p_1", "p_2"]
    assert [row["label_2"] for row in table] == [row["top"][1]["label"] for row in rows]
    tigranet(*command, "--parquet", tmp_path / "a.parquet")
    stored = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert [row["label_2"] for row in stored] == [row["label_2"] for row in table]
    assert [row["p_1"] for row in stored] == [row["probabilities"]["1"] for row in rows]
    explained = [
        json.loads(line) for line in tigranet(*command, "--json", "--explain", tmp_path / "why").out.splitlines()
    ]
    assert [list(row) for row in explained] == [list(row) for row in rows]
    assert [row["top"][0]["label"] for row in explained] == [row["label"] for row in rows]


def test_hundreds_of_classes_are_written_with_a_column_each(tigranet, tmp_path, photos):
    names = [f"species {number}" for number in range(300)]
    TIGraNet("SC[2,2]-S[2]", 300, class_names=names, image_size=12).save_pretrained(tmp_path / "many")
    code, _, err = tigranet("predict", tmp_path / "many", photos, "--probabilities", "--csv", tmp_path / "a.csv")
    assert code == 0
    with open(tmp_path / "a.csv") as file:
        rows = list(csv.DictReader(file))
    assert [name for name in rows[0] if name.startswith("p_")] == [f"p_{name}" for name in names]
    assert len(err.splitlines()) < 30


@pytest.mark.parametrize("command", ["predict", "features"])
def test_tables_lists_archives_and_arrays_give_the_rows_of_the_files(
    tigranet, tmp_path, model, photos, command, monkeypatch
):
    """The pixels are the same, so are the numbers; only the names differ."""
    files = sorted(photos.rglob("[0-9]*.png"))[:6]
    expected = [line.split(",", 1)[1] for line in tigranet(command, model, *files).out.splitlines()]
    (tmp_path / "t.csv").write_text("label,path\n" + "".join(f"x,{file}\n" for file in files))
    (tmp_path / "l.txt").write_text("".join(f"{file}\n" for file in files))
    write_zip(tmp_path / "a.zip", [(f"in/{file.name}", file.read_bytes()) for file in files])
    np.savez(tmp_path / "i.npz", images=np.stack([np.asarray(Image.open(file)) for file in files]))
    stdins = {"lines": b"\n".join, "print0": b"\0".join}
    for name in ("t.csv", "l.txt", "a.zip", "i.npz", *stdins):
        source = tmp_path / name
        if name in stdins:
            source = "-"
            content = stdins[name](os.fsencode(file) for file in files)
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        code, out, err = tigranet(command, model, source)
        assert code == 0, err
        assert [
            line.rsplit(".png" if name != "i.npz" else "]", 1)[-1].split(",", 1)[1] for line in out.splitlines()
        ] == expected, name


def test_one_image_from_standard_input_and_a_second_dash(tigranet, model, photos, monkeypatch):
    content = next(photos.rglob("[0-9]*.png")).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, _ = tigranet("predict", model, "-")
    assert (code, out.splitlines()[1].startswith("stdin,")) == (0, True)
    code, _, err = tigranet("predict", model, "-", "-")
    assert (code, "once" in err) == (1, True)


def test_bad_entries_of_every_source_are_named_and_stop_nothing(tigranet, tmp_path, model, photos):
    good = next(photos.rglob("[0-9]*.png"))
    (tmp_path / "t.csv").write_text(f"path\nmissing.png\n{good}\n")
    (tmp_path / "l.txt").write_text(f"missing-too.png\n{good}\n{photos / 'digit 0'}\n")
    write_zip(tmp_path / "a.zip", [("bad.png", b"bad"), ("good.png", good.read_bytes())])
    (tmp_path / "broken.zip").write_bytes(b"PK")
    (tmp_path / "broken.npz").write_bytes(b"PK")
    sources = [tmp_path / name for name in ("t.csv", "l.txt", "a.zip", "broken.zip", "broken.npz")]
    code, out, err = tigranet("predict", model, *sources)
    assert code == 0
    zeros = len(list((photos / "digit 0").iterdir()))
    assert len(out.splitlines()) == 1 + 3 + zeros
    for name in ("missing.png", "missing-too.png", "a.zip/bad.png", "broken.zip", "broken.npz"):
        assert f"/{name}: " in err.replace("\n", " ")
    code, _, err = tigranet("predict", model, tmp_path / "broken.zip")
    assert (code, "none of the images" in err) == (1, True)


def test_an_output_folder_is_continued_by_the_same_command(tigranet, tmp_path, model, photos):
    command = ("predict", model, photos, "-o", tmp_path / "answers", "--part-size", "20", "--workers", "1")
    code, out, err = tigranet(*command)
    assert (code, out) == (0, "")
    assert "41 images in 3 Parquet files" in err
    assert "1 could not be read" in err
    (tmp_path / "answers" / "part-000001.parquet").unlink()
    code, _, err = tigranet(*command)
    assert (code, "2 files were there before" in err, "20 images in" in err) == (0, True, True)
    code, _, err = tigranet(*command, "--reject", "0.9")
    assert (code, f"'{tmp_path / 'answers'}'" in err, '"reject": 0.9' in err) == (1, True, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "answers", "--csv", "a.csv"), "--csv"),
        (("-o", "answers", "--json"), "--json"),
        (("--engine", "ray"), "-o"),
        (("--workers", "2"), "-o"),
    ],
)
def test_options_of_an_output_folder_belong_together(tigranet, tmp_path, monkeypatch, model, photos, options, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = tigranet("predict", model, photos, *options)
    assert (code, words in err) == (1, True)
    assert not (tmp_path / "answers").exists()


def test_what_cannot_be_divided_is_refused_with_an_output_folder(tigranet, tmp_path, model):
    write_zip(tmp_path / "a.zip", [("a.png", b"")])
    code, _, err = tigranet("predict", model, tmp_path / "a.zip", "-o", tmp_path / "answers")
    assert (code, "a.zip" in err, "unpack" in err) == (1, True, True)
