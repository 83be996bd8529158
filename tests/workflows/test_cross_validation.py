import json

import pytest

from images import fill
from tigranet.training import Hardware
from tigranet.workflows import cross_validation as module
from tigranet.workflows.cross_validation import CrossValidation, FoldResult, check_folds
from tigranet.workflows.train import can_resume, train

OPTIONS = {"architecture": "SC[2,2]-S[2]", "recipe": {"epochs": 1}}


@pytest.fixture
def photos(tmp_path):
    return fill(tmp_path / "photos", {"a": 12, "b": 12}, size=(6, 6))


def test_the_accuracy_of_all_folds_counts_every_image_once():
    rows = (FoldResult(1, 20, 4, 30, 27, 90.0, 80.0, 1.0), FoldResult(2, 20, 4, 10, 5, 50.0, 40.0, 1.0))
    result = CrossValidation(rows, "rotated", "as they are")
    assert (result.images, result.accuracy, result.moved) == (40, 80.0, 70.0)
    values = result.to_json()
    assert (values["mean"], values["std"], values["interval"]["images"]) == (70.0, 20.0, 40)
    first, second = result.describe()
    assert "as they are: 80.0 %, 95 % interval 65.2 to 89.5 from 40 test images; 50.0 to 90.0 %" in first
    assert "rotated: 70.0 %" in second


def test_folds_change_nothing_about_the_model_and_are_recorded(photos, tmp_path):
    plain = train(photos, **OPTIONS)
    trained = train(photos, tmp_path / "m", folds=2, **OPTIONS)
    for name, weights in plain.network.state_dict().items():
        assert weights.equal(trained.network.state_dict()[name]), name
    assert (trained.cross_validation.images, len(trained.cross_validation.folds)) == (24, 2)
    record = json.loads((tmp_path / "m" / "training.json").read_text())
    assert record["cross_validation"] == trained.cross_validation.to_json()
    assert [row["test_images"] for row in record["cross_validation"]["rows"]] == [12, 12]
    assert not list(tmp_path.rglob("fold-*/*.ckpt"))
    assert plain.cross_validation is None


def test_finished_folds_are_not_trained_again(photos, tmp_path, monkeypatch):
    expected = train(photos, folds=3, **OPTIONS)
    train_module, calls = module.train_module, []

    def interrupt(*arguments, **options):
        calls.append(options["folder"].name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return train_module(*arguments, **options)

    monkeypatch.setattr(module, "train_module", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(photos, tmp_path / "m", folds=3, **OPTIONS)
    assert can_resume(tmp_path / "m")
    with pytest.raises(FileExistsError, match="--resume"):
        train(photos, tmp_path / "m", folds=3, **OPTIONS)
    for settings in ({"folds": 2}, {"seed": 1, "folds": 3}):
        with pytest.raises(ValueError, match="different training"):
            train(photos, tmp_path / "m", resume=True, **OPTIONS, **settings)
    calls[:] = ["", ""]
    resumed = train(photos, tmp_path / "m", folds=3, resume=True, **OPTIONS)
    assert calls[2:] == ["fold-2", "fold-3"]
    accuracies = [[fold.accuracy for fold in each.cross_validation.folds] for each in (resumed, expected)]
    assert accuracies[0] == accuracies[1]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"rows": 3}', '{"rows": [{"fold": 1, "folds": 2, "training": "x"}]}', '{"rows": [null]}']
)
def test_a_damaged_record_of_folds_is_an_error_that_names_it(photos, tmp_path, content):
    (tmp_path / "m" / "folds").mkdir(parents=True)
    (tmp_path / "m" / "folds" / "folds.json").write_text(content)
    with pytest.raises(ValueError, match="folds"):
        train(photos, tmp_path / "m", folds=2, resume=True, **OPTIONS)


def test_values_of_a_record_are_checked():
    row = {"fold": 1, "train_images": 2, "validation_images": 1, "test_images": 3, "correct": 3}
    good = row | {"accuracy": 100.0, "moved": 50, "seconds": 1.5}
    assert module._fold_of_row(good, "f").moved == 50
    for change in (
        {"correct": "3"},
        {"correct": 4},
        {"test_images": 0},
        {"moved": None},
        {"moved": 101},
        {"fold": True},
    ):
        with pytest.raises(ValueError, match="not a record of folds"):
            module._fold_of_row(good | change, "f")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, False, None, None), "at least 2 folds, got 1"),
        ((3, True, None, None), "quick"),
        ((3, False, 10, None), "train_images"),
        ((3, False, None, Hardware("cpu", 2)), "1 device, got 2"),
    ],
)
def test_contradictions_are_found_before_the_data_are_read(arguments, words):
    with pytest.raises(ValueError, match=words):
        check_folds(*arguments)


def test_a_start_that_knows_the_images_is_reported(photos, tmp_path):
    train(photos, tmp_path / "m", **OPTIONS)
    data = train(photos, **OPTIONS).data
    (notice,) = module.known_image_notices(tmp_path / "m", data)
    assert f"{len(data.train.labels)} of the images" in notice
    assert module.known_image_notices("oriented-mnist-012", data) == []
