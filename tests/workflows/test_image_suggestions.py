import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from images import fill, save
from tigranet import TIGraNet
from tigranet.workflows.image_suggestions import MAX_COUNT, suggest_images
from tigranet.workflows.load_data import load_data
from tigranet.workflows.saved_run import content_hashes


def names(result):
    return [Path(image.path).name for image in result.images]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A network with random weights that is uncertain of everything."""
    path = tmp_path_factory.mktemp("model") / "model"
    torch.manual_seed(0)
    TIGraNet("SC[3,3]-S[3]-FC[5]", 3, class_names=["a", "b", "c"], image_size=12).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def unlabelled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unlabelled")
    generator = np.random.default_rng(1)
    for number in range(30):
        blocks = generator.integers(0, 255, (6, 6), dtype=np.uint8)
        save(folder / f"{number:02d}.png", np.kron(blocks, np.ones((4, 4), np.uint8)))
    return folder


def test_the_images_are_those_of_which_the_network_is_uncertain(network, unlabelled):
    result = suggest_images(network, unlabelled, count=8)
    assert len(set(names(result))) == 8
    assert (result.examined, result.labelled, result.duplicates) == (30, 0, 0)
    uncertainties = [image.uncertainty for image in result.images]
    assert uncertainties == sorted(uncertainties, reverse=True)
    for image in result.images:
        assert image.probability >= image.second_probability
        assert image.uncertainty == pytest.approx(1 - image.probability + image.second_probability, abs=1e-5)
    assert not result.knows_training_images
    json.dumps(result.to_json())


def test_neither_quarter_turns_nor_the_order_nor_other_batches_change_the_result(network, unlabelled, tmp_path):
    expected = suggest_images(network, unlabelled, count=8, seed=4)
    files = sorted(unlabelled.glob("*.png"))
    reversed_files = suggest_images(network, files[::-1], count=8, seed=4)
    assert reversed_files == expected
    for number, file in enumerate(files):
        with Image.open(file) as image:
            image.rotate(90 * (number % 4)).save(tmp_path / file.name)
    turned = suggest_images(network, tmp_path, count=8, seed=4)
    assert names(turned) == names(expected)
    assert [image.probability for image in turned.images] == pytest.approx(
        [image.probability for image in expected.images], abs=2e-6
    )
    assert names(suggest_images(network, unlabelled, count=8, seed=5)) != names(expected)


def test_copies_and_quarter_turns_of_them_are_suggested_once(network, unlabelled, tmp_path):
    for number, file in enumerate(unlabelled.iterdir()):
        with Image.open(file) as image:
            small = image.resize((12, 12))
        small.save(tmp_path / file.name)
        small.rotate(90 * number).save(tmp_path / f"copy-{file.stem}.bmp")
    result = suggest_images(network, tmp_path, count=40)
    assert (result.examined, result.duplicates) == (30, 30)
    assert sorted(names(result)) == sorted(file.name for file in unlabelled.iterdir())


def test_training_images_are_left_out_whatever_their_rotation(network, tmp_path):
    folder = fill(tmp_path / "photos", {"a": 10, "b": 10, "c": 10})
    shutil.copytree(network, tmp_path / "model")
    data = load_data(folder, size=12).data
    (tmp_path / "model" / "training.json").write_text(json.dumps(content_hashes(folder, data)))
    for number, file in enumerate(sorted(folder.rglob("*.png"))):
        with Image.open(file) as image:
            image.rotate(90 * (number % 4)).save(file)
    result = suggest_images(tmp_path / "model", folder, count=5)
    assert result.knows_training_images
    assert result.labelled == len(data.train.labels)
    assert result.examined == 30 - result.labelled


def test_a_folder_of_labelled_images_gives_no_suggestion(network, unlabelled):
    from tigranet.data import read_letterboxed
    from tigranet.data.leakage import content_hash

    images = [image for _, image in read_letterboxed(sorted(unlabelled.iterdir()), 12, color=False)]
    result = suggest_images(network, unlabelled, labelled_hashes=[content_hash(image) for image in images])
    assert (result.images, result.labelled, result.examined) == ((), 30, 0)


def test_unreadable_files_are_reported(network, unlabelled, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no image")
    result = suggest_images(network, [unlabelled, tmp_path], count=2)
    assert [file.path.name for file in result.unreadable_files] == ["broken.png"]
    console = Console(file=io.StringIO(), width=40)
    with pytest.raises(ValueError, match="none of the images"):
        suggest_images(network, tmp_path, console=console)
    assert "broken.png: " in console.file.getvalue()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        suggest_images(network, tmp_path / "nowhere")


@pytest.mark.parametrize("count", [0, -3, MAX_COUNT + 1])
def test_a_count_that_is_not_possible_is_refused(network, unlabelled, count):
    with pytest.raises(ValueError, match=f"1 to 2,000, got {count:,}"):
        suggest_images(network, unlabelled, count=count)


def test_a_network_of_one_class_has_no_second_class(unlabelled, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 1, class_names=["only"], image_size=12).save_pretrained(tmp_path / "m")
    (first, *_) = suggest_images(tmp_path / "m", unlabelled, count=3).images
    assert (first.label, first.second_label, first.uncertainty) == ("only", None, 0)
