import io
import json

import pytest
from rich.console import Console

from images import fill, save
from tigranet.data.leakage import content_hash
from tigranet.workflows.model_and_data import load_model_and_data
from tigranet.workflows.train import train

SMALL = {"architecture": "SC[2,2]-S[2]", "recipe": {"epochs": 1}}


def test_the_data_are_split_as_for_the_training(folder, tmp_path):
    trained = train(folder, tmp_path / "m", **SMALL, seed=5, size=9)
    loaded = load_model_and_data(tmp_path / "m", folder)
    assert (loaded.seed, loaded.excluded_images) == (5, 0)
    assert loaded.data.test.images.equal(trained.data.test.images)
    assert not loaded.network.training
    assert load_model_and_data(tmp_path / "m", folder, seed=8).seed == 8


def test_training_images_are_left_out_when_files_were_added(tmp_path):
    folder = fill(tmp_path / "many", {"a": 60, "b": 60})
    trained = train(folder, tmp_path / "m", **SMALL)
    save(folder / "a" / "another.png", (255 * trained.data.test.images[0, 0]).byte().numpy() ^ 1)
    console = Console(file=io.StringIO(), width=300)
    loaded = load_model_and_data(tmp_path / "m", folder, console=console)
    training_hashes = {content_hash(image) for image in trained.data.train.images}
    assert loaded.excluded_images > 0
    assert not training_hashes & {content_hash(image) for image in loaded.data.test.images}
    total = loaded.excluded_images + len(loaded.data.test.labels)
    assert f"{loaded.excluded_images} of {total} test images" in console.file.getvalue()


@pytest.mark.parametrize(("name", "value"), [("group", "((("), ("train_images", 10**6)])
def test_a_split_of_the_training_that_does_not_fit_the_data_is_reported_with_its_file(folder, tmp_path, name, value):
    train(folder, tmp_path / "m", **SMALL, size=9)
    file = tmp_path / "m" / "training.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))
    with pytest.raises(ValueError, match=r"training\.json"):
        load_model_and_data(tmp_path / "m", folder)
