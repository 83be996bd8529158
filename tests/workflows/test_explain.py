import csv

import numpy as np
import pytest
import torch
from PIL import Image

from tigranet.data import UnreadableFile
from tigranet.evaluation.file_explanations import Explanation
from tigranet.figures.evidence_overlay import draw_evidence
from tigranet.workflows.explain import COLUMNS, explain, stream_explanations
from tigranet.workflows.predict import predict


def test_pictures_and_a_table_are_written(folder, model, tmp_path):
    (folder / "b" / "broken.png").touch()
    result = explain(model, [folder / "a", folder / "b" / "broken.png"], tmp_path / "out")
    assert [file.path.name for file in result.unreadable_files] == ["broken.png"]
    assert result.table == tmp_path / "out" / "evidence.csv"
    with result.table.open() as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len(result.explanations) == 20
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"evidence.csv", *(row["picture"] for row in rows)}
    for row, explanation in zip(rows, result.explanations, strict=True):
        assert row["path"] == explanation.prediction.path
        assert row["explained_class"] == explanation.explained_class
        assert float(row["score"]) == pytest.approx(float(row["evidence"]) + float(row["constant"]), abs=1e-4)
        picture = np.asarray(Image.open(tmp_path / "out" / row["picture"]))
        np.testing.assert_array_equal(picture, draw_evidence(explanation.image, explanation.evidence))


def test_predictions_are_those_of_predict(folder, model):
    result = explain(model, folder / "a", reject=0.5)
    for explanation, prediction in zip(
        result.explanations, predict(model, folder / "a", reject=0.5).predictions, strict=True
    ):
        assert explanation.prediction.label == prediction.label
        assert explanation.prediction.probability == pytest.approx(prediction.probability, abs=1e-5)
    assert result.table is None


def test_rotated_files_have_rotated_evidence(folder, model):
    before = explain(model, folder / "a").explanations
    for path in (folder / "a").iterdir():
        Image.open(path).transpose(Image.Transpose.ROTATE_180).save(path)
    for rotated, upright in zip(explain(model, folder / "a").explanations, before, strict=True):
        assert torch.equal(rotated.evidence, torch.rot90(upright.evidence, 2, (0, 1)))


def test_a_table_replaces_an_older_one_only_when_it_is_complete(folder, model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "evidence.csv").write_text("older")
    stream = stream_explanations(model, folder, out)
    assert isinstance(next(stream), Explanation)
    assert (out / "00001-000.png").exists()
    stream.close()
    assert (out / "evidence.csv").read_text() == "older"
    assert sorted(path.name for path in out.iterdir()) == ["00001-000.png", "evidence.csv"]
    (tmp_path / "broken.png").touch()
    stream = stream_explanations(model, tmp_path / "broken.png", out)
    assert isinstance(next(stream), UnreadableFile)
    with pytest.raises(ValueError, match="none of the images"):
        next(stream)
    assert (out / "evidence.csv").read_text() == "older"


def test_wrong_arguments_are_found_before_anything_is_written(folder, model, tmp_path):
    (tmp_path / "file").touch()
    for output, options, error, words in (
        (tmp_path / "file", {}, NotADirectoryError, "file"),
        (folder, {}, ValueError, "folder of the images"),
        (folder / "a", {}, ValueError, "would be read as a class"),
        (tmp_path / "out", {"explained_class": "z"}, ValueError, "'z'"),
        (tmp_path / "out", {"reject": 2.0}, ValueError, "reject"),
        (tmp_path / "out", {"coverage": 0.9}, ValueError, "calibration"),
        (tmp_path / "out", {"device": "gpu"}, ValueError, "'gpu'"),
    ):
        with pytest.raises(error, match=words):
            stream_explanations(model, folder, output, **options)
    with pytest.raises(FileNotFoundError, match="nosuch"):
        stream_explanations(model, folder / "nosuch.png", tmp_path / "out")
    assert not (tmp_path / "out").exists()
