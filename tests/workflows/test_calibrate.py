from dataclasses import replace

import pytest

from tigranet.workflows.calibrate import calibrate
from tigranet.workflows.evaluate import evaluate
from tigranet.workflows.model_calibration import read_calibration
from tigranet.workflows.predict import predict
from tigranet.workflows.train import train
from tigranet.workflows.unknown_detection import read_unknown_detector

SMALL = {"architecture": "SC[2,2]-S[2]", "recipe": {"epochs": 1, "keep": "best"}}


def test_a_model_without_calibration_gets_the_one_that_training_would_have_written(folder, tmp_path):
    trained = train(folder, tmp_path / "model", **SMALL)
    assert read_calibration(tmp_path / "model", trained.network) == trained.calibration
    assert trained.calibration.selected_weights
    assert trained.calibration.conformal.images == len(trained.data.validation.labels) == 6
    (tmp_path / "model" / "calibration.json").unlink()
    (tmp_path / "model" / "unknown.safetensors").unlink()
    with pytest.raises(ValueError, match=r"calibration\.json"):
        predict(tmp_path / "model", folder, coverage=0.5)
    assert len(predict(tmp_path / "model", folder).predictions) == 40  # without label sets nothing is needed
    assert calibrate(tmp_path / "model", folder) == trained.calibration
    assert read_calibration(tmp_path / "model", trained.network) == trained.calibration
    detector = read_unknown_detector(tmp_path / "model", trained.network)
    assert detector.known == trained.unknown_detector.known
    sets = [prediction.labels for prediction in predict(tmp_path / "model", folder, coverage=0.5).predictions]
    assert all(labels for labels in sets)
    measured = evaluate(tmp_path / "model", folder, coverage=0.5).label_sets
    assert (measured.images, measured.calibration_images) == (6, 6)
    assert evaluate(tmp_path / "model", folder).label_sets is None


def test_images_that_the_network_was_trained_on_do_not_calibrate_it(small, tmp_path):
    data = replace(small, train=small.train.take(list(range(10))), test=small.test.take([]))
    trained = train(data, tmp_path / "model", architecture="SC[2,2]-S[2]", recipe={"epochs": 1})
    assert trained.calibration.conformal.images == 30
    assert calibrate(tmp_path / "model", data).conformal.images == 20


def test_without_validation_images_there_is_no_calibration(small, tmp_path):
    nothing = small.validation.take([])
    (tmp_path / "model").mkdir()
    for name in ("calibration.json", "unknown.safetensors"):
        (tmp_path / "model" / name).write_text("of an earlier model")
    data = replace(small, validation=nothing)
    trained = train(data, tmp_path / "model", architecture="SC[2,2]-S[2]", recipe={"epochs": 1})
    assert trained.calibration is None
    assert not (tmp_path / "model" / "calibration.json").exists()
    assert trained.unknown_detector is None
    assert not (tmp_path / "model" / "unknown.safetensors").exists()
    with pytest.raises(ValueError, match="small has no validation images"):
        calibrate(tmp_path / "model", data)


def test_other_classes_and_models_of_the_package_are_refused(small, model):
    with pytest.raises(ValueError, match="other data"):
        calibrate(model, small)
    with pytest.raises(ValueError, match="part of the package"):
        calibrate("oriented-mnist-012", small)
