import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from images import fill
from tigranet import TIGraNet
from tigranet.data import load, load_user_data
from tigranet.data.leakage import content_hash
from tigranet.workflows.load_data import load_data
from tigranet.workflows.saved_run import SavedRun
from tigranet.workflows.training_images import MeasuredModel, exclude_training_images


def measured(name="m", size=12, **run):
    return MeasuredModel(name, TIGraNet("SC[2,2]-S[2]", 2, image_size=size), SavedRun(**run))


def trained_on(images, **run):
    return SavedRun(training_hashes=frozenset(map(content_hash, images)), **run)


def contents(images):
    return {image.numpy().tobytes() for image in images}


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=500)


def test_the_training_images_of_every_model_are_left_out_and_counted(folder, console):
    data = load_data(folder).data
    splits = [load_data(folder, seed=seed).data for seed in (0, 1, 2)]
    models = [
        replace(measured(f"[bold]{seed}"), run=trained_on(split.train.images, seed=seed))
        for seed, split in enumerate(splits)
    ]
    result = exclude_training_images(data, folder, models[:2], models[0].run, console=console)
    leaked = contents(data.test.images) & contents(splits[1].train.images)
    assert 0 < len(leaked) < len(data.test.labels)
    assert contents(result.test.images) == contents(data.test.images) - leaked
    assert len(result.test_files) == len(result.test.labels) == len(data.test.labels) - len(leaked)
    notice = console.file.getvalue()
    assert f"{len(leaked)} of {len(data.test.labels)} test images of photos" in notice
    assert f"{len(leaked)} of '[bold]1'" in notice
    assert "[bold]0" not in notice
    both = exclude_training_images(data, folder, models, models[0].run)
    assert contents(both.test.images) == contents(result.test.images) - contents(splits[2].train.images)


def test_nothing_is_left_out_or_printed_for_models_that_were_trained_on_other_images(folder, console):
    data = load_data(folder).data
    models = [replace(measured(), run=trained_on(part.images)) for part in (data.train, data.validation)]
    assert exclude_training_images(data, folder, models, models[0].run, console=console) is data
    assert exclude_training_images(data, folder, [], SavedRun(), console=console) is data
    assert console.file.getvalue() == ""


def test_a_test_of_training_images_only_is_refused(folder):
    data = load_data(folder).data
    halves = [replace(measured(name), run=trained_on(data.test.images[place::2])) for place, name in enumerate("pq")]
    assert len(data.test.labels) == 6
    with pytest.raises(ValueError, match=r"all 6 test images of photos.*'p' and 'q'"):
        exclude_training_images(data, folder, halves, SavedRun())


@pytest.mark.parametrize("kind", ["folder", "npz"])
def test_models_that_read_different_sizes_are_compared_too(folder, tmp_path, kind):
    source = folder
    if kind == "npz":
        files = sorted(folder.rglob("*.png"))
        pixels = np.stack([np.asarray(Image.open(file)) for file in files])
        np.savez(tmp_path / "arrays.npz", x=pixels, y=[file.parent.name for file in files])
        source = tmp_path / "arrays.npz"
    other, _ = load_user_data(source, seed=1, size=7)
    second = replace(measured(size=7), run=trained_on(other.train.images, seed=1))
    data = load_data(source, size=12).data
    result = exclude_training_images(data, source, [second], SavedRun())
    at_that_size, _ = load_user_data(source, seed=0, size=7)  # the same test images, in the same order
    expected = [image.numpy().tobytes() not in contents(other.train.images) for image in at_that_size.test.images]
    assert 0 < sum(expected) < len(expected)
    assert torch.equal(result.test.images, data.test.images[torch.tensor(expected)])


@pytest.mark.parametrize(("name", "seed"), [("m", 3), ("paper-mnist-012", 0), ("oriented-mnist-012", 0)])
def test_named_data_sets_are_split_again_by_the_seed_of_each_model(mnist_012, name, seed):
    """The networks of the package have no record: they were trained with the seed 0."""
    model = measured(name, 28, **({"data": "mnist-012", "seed": 3} if name == "m" else {}))
    data = load("mnist-012", 5)
    training_images = contents(load("mnist-012", seed).train.images)
    result = exclude_training_images(data, "mnist-012", [model], SavedRun(seed=5))
    leaked = contents(data.test.images) & training_images
    assert len(leaked) > 10
    assert contents(result.test.images) == contents(data.test.images) - leaked
    own_split = load("mnist-012", seed)
    assert exclude_training_images(own_split, "mnist-012", [model], SavedRun(seed=seed)) is own_split


def test_named_data_sets_of_one_source_are_compared_whatever_their_frame():
    padded, resized = load("mnist-trans-mini", 1), load("mnist-rot-mini", 2)
    model = measured(size=34, data="mnist-trans-mini", seed=1)
    result = exclude_training_images(resized, "mnist-rot-mini", [model], SavedRun(seed=2))
    inner = contents(image[:, 3:-3, 3:-3].contiguous() for image in padded.train.images)
    unframed = load("mnist-rot10-mini", 0)  # 28x28; it shows that the images of the source are compared
    assert unframed.train.images.shape[-1] == 28
    assert len(inner) == len(padded.train.labels)
    share = len(result.test.labels) / len(resized.test.labels)
    assert 0.1 < share < 0.35  # 3,500 of 4,500 digits were training images
    again = exclude_training_images(unframed, "mnist-rot10-mini", [model], SavedRun())
    assert contents(again.test.images) == contents(unframed.test.images) - inner


def test_a_folder_of_images_from_a_named_data_set_is_recognised(mnist_012, tmp_path):
    for number, (image, label) in enumerate(zip(*mnist_012.train[:2], strict=True)):
        if number < 30:
            path = tmp_path / "digits" / str(int(label)) / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((image[0] * 255).round().byte().numpy()).save(path)
    data = load_data(tmp_path / "digits").data
    with pytest.raises(ValueError, match=r"all \d+ test images of digits"):
        exclude_training_images(data, tmp_path / "digits", [measured(size=28, data="mnist-012")], SavedRun())
    exported = replace(measured("f"), run=trained_on(mnist_012.test.images[:9]))
    result = exclude_training_images(mnist_012, "mnist-012", [exported], SavedRun())
    assert torch.equal(result.test.images, mnist_012.test.images[9:])


@pytest.mark.parametrize("model", [measured("m"), measured("m", data="gone/"), measured("paper-mnist-rot", 26)])
def test_it_is_said_when_the_training_images_are_not_known(mnist_012, tmp_path, console, model):
    """No record, no hashes in the record, or a named data set whose files are not there."""
    arguments = (mnist_012, "mnist-012", [model], SavedRun())
    assert exclude_training_images(*arguments, data_dir=tmp_path, console=console) is mnist_012
    assert f"not known which images '{model.name}'" in console.file.getvalue()


def test_a_data_set_that_the_caller_has_split_stays_as_it_is(small):
    """Its training and test images are the same ones."""
    run = trained_on(small.train.images, test_hash=content_hash(small.test.images))
    assert exclude_training_images(small, small, [replace(measured(), run=run)], run) is small
    changed = replace(small, test=small.test.take([0, 1]))
    with pytest.raises(ValueError, match="all 2 test images of small"):
        exclude_training_images(changed, changed, [replace(measured(), run=run)], run)


def test_copies_of_a_model_leave_out_each_image_once(folder, console):
    data = load_data(folder).data
    run = trained_on(data.test.images[:2])
    models = [replace(measured(name), run=run) for name in "ab"]
    assert len(exclude_training_images(data, folder, models, run, console=console).test.labels) == 4
    assert "2 of 6 test images" in console.file.getvalue()


def test_a_folder_named_like_a_network_of_the_package_is_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert measured("paper-mnist-012").named_data_set == "mnist-012"
    fill(tmp_path / "paper-mnist-012", {"a": 1})
    assert measured("paper-mnist-012").named_data_set is None
