import os

import pytest

from tigranet.data import UnreadableFile
from tigranet.evaluation import Prediction
from tigranet.workflows.predict import predict, stream_predictions


def test_every_image_gets_a_class(folder, model):
    (folder / "b" / "broken.png").touch()
    result = predict(model, folder)
    assert len(result.predictions) == 40
    assert {prediction.label for prediction in result.predictions} <= {"a", "b"}
    assert [file.path for file in result.unreadable_files] == [folder / "b" / "broken.png"]
    one = predict(str(model), folder / "a" / "003.png")
    assert one.predictions[0] == next(row for row in result.predictions if row.path == one.predictions[0].path)


def test_below_the_probability_the_class_is_unknown(folder, model):
    assert {row.label for row in predict(model, folder / "a", reject=1.0).predictions} == {"unknown"}


def test_predictions_come_one_after_the_other(folder, model):
    stream = stream_predictions(model, [folder / "a" / "000.png", folder / "b"])
    assert isinstance(next(stream), Prediction)
    assert len(list(stream)) == 20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are those of Unix")
def test_a_named_pipe_in_a_folder_is_named_in_its_place(folder, model):
    os.mkfifo(folder / "a" / "003b.png")
    results = list(stream_predictions(model, folder))
    assert [type(result) for result in results] == [Prediction] * 4 + [UnreadableFile] + [Prediction] * 36
    assert results[4].path == folder / "a" / "003b.png"
    with pytest.raises(ValueError, match="none of the images"):
        predict(model, folder / "a" / "003b.png")


def test_no_readable_image_is_an_error(folder, model, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no images"):
        predict(model, tmp_path / "empty")
    (tmp_path / "broken.png").touch()
    stream = stream_predictions(model, tmp_path / "broken.png")
    assert isinstance(next(stream), UnreadableFile)
    with pytest.raises(ValueError, match="none of the images"):
        next(stream)


def test_a_missing_model_or_image_is_found_before_the_first_prediction(folder, model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nosuch\.png"):
        stream_predictions(model, [folder, tmp_path / "nosuch.png"])
    with pytest.raises(FileNotFoundError, match="nomodel"):
        stream_predictions(tmp_path / "nomodel", folder)
