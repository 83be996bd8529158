import io
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from images import fill, save
from tigranet import TIGraNet
from tigranet.architecture import PRESETS
from tigranet.data.leakage import content_hash
from tigranet.figures import rotated_examples
from tigranet.training import Hardware
from tigranet.workflows import train as module
from tigranet.workflows.evaluate import evaluate
from tigranet.workflows.saved_run import SavedRun
from tigranet.workflows.train import can_resume, train

SMALL = {"architecture": "SC[2,2]-S[2]", "recipe": {"epochs": 1}}


def test_the_import_loads_neither_reproduction_nor_figures(torch_process):
    """Only figures use matplotlib; torchmetrics loads it as well, so it cannot be looked for itself."""
    code = (
        "import sys, tigranet.workflows.train\n"
        "print([name for name in sys.modules"
        " if name.startswith(('tigranet.reproduction', 'tigranet.figures', 'tigranet.cli'))])"
    )
    assert torch_process.run(code).stdout.splitlines()[-1:] == ["[]"]


@pytest.mark.usefixtures("whole_results")
def test_a_folder_of_images_becomes_a_saved_model(folder, tmp_path):
    (folder / "a" / "broken.png").touch()
    trained = train(folder, tmp_path / "model", **SMALL, seed=3, command="a command")
    assert trained.folder == tmp_path / "model"
    assert [file.path.name for file in trained.unreadable_files] == ["broken.png"]
    assert trained.picture == tmp_path / "model" / "rotated.png"
    assert trained.picture.stat().st_size > 10_000
    assert trained.paper is None
    assert {path.name for path in trained.folder.iterdir()} == {
        "README.md", "calibration.json", "checkpoints", "config.json", "model.safetensors", "rotated.png",
        "training.json", "unknown.safetensors",
    }  # fmt: skip
    loaded = TIGraNet.from_pretrained(trained.folder)
    assert loaded.class_names == ("a", "b")
    assert torch.equal(loaded(trained.data.test.images), trained.network(trained.data.test.images))
    record = json.loads((trained.folder / "training.json").read_text())
    assert record.keys() - trained.record.keys() == {"seen", "tested"}
    assert record["test"] == trained.result.test
    assert (record["data"], record["seed"], record["command"]) == (str(folder), 3, "a command")
    assert record["seen"].split() == [content_hash(image) for image in trained.data.train.images]
    card = (trained.folder / "README.md").read_text()
    assert "`a command`" in card
    assert f"| as they are | {trained.result.test:.2f} |" in card


def test_the_choices_for_the_user_are_explained(folder, small):
    console = Console(file=io.StringIO(), width=80)
    trained = train(folder, recipe={"epochs": 1}, console=console)
    messages = console.file.getvalue()
    assert "photos: 28 training images, 6 validation and 6 test images of 2 classes\n" in messages
    assert "images: 12x12 pixels, grey, not scaled; --size sets another size\n" in messages
    parameters = sum(parameter.numel() for parameter in trained.network.parameters())
    assert f"network: pyramid-tiny, {parameters:,} parameters, the default for 28 training images" in messages
    assert "28 of 28 examined training images fill their frame" in messages  # they are noise
    assert "--window disc" in messages
    assert (trained.network.window, trained.record["window"]) == ("none", "none")
    console = Console(file=io.StringIO(), width=80)
    train(small, **SMALL, console=console)
    messages = console.file.getvalue()
    assert "images: 28x28 pixels, grey\n" in messages
    assert "small: 30 upright training images, never rotated, 30 validation and 30 test images" in messages
    assert "network: SC[2,2]-S[2], " in messages
    assert "parameters, as requested\n" in messages
    assert "window: none; the whole images are used, because only 0 of 30" in messages


def test_the_window_and_the_margin_are_saved_with_the_network(folder, tmp_path):
    trained = train(folder, tmp_path / "model", **SMALL, window="disc")
    loaded = TIGraNet.from_pretrained(tmp_path / "model")
    assert (loaded.window, loaded.margin) == (trained.record["window"], trained.record["margin"]) == ("disc", 0)
    images = trained.data.test.images
    changed = images.clone()
    changed[..., 0, 0] += 1
    assert torch.equal(loaded(changed), trained.network(images))  # a corner does not matter
    assert evaluate(tmp_path / "model", folder).robustness.upright == trained.result.test
    plain = train(folder, tmp_path / "model", **SMALL, margin=3, overwrite=True).network
    assert not torch.equal(plain(changed), plain(images))
    assert TIGraNet.from_pretrained(tmp_path / "model").margin == 3


@pytest.mark.parametrize(("color", "channels"), [(None, 3), (True, 3), (False, 1)])
def test_colors_are_kept_unless_the_user_wants_grey_images(tmp_path, color, channels):
    rng = np.random.default_rng(0)
    for number in range(12):
        save(tmp_path / "ab"[number % 2] / f"{number}.png", rng.integers(0, 256, (9, 9, 3), np.uint8))
    console = Console(file=io.StringIO(), width=200)
    assert train(tmp_path, **SMALL, color=color, console=console).network.in_maps == channels
    assert ("colour, not scaled; --size sets another size, --grey" in console.file.getvalue()) == (channels == 3)


def test_a_network_to_start_from_decides_about_colors(tmp_path, folder):
    start = TIGraNet("SC[2,2]-S[2]", 2, class_names=["a", "b"], image_size=12)
    start.save_pretrained(tmp_path / "start")
    rng = np.random.default_rng(0)
    for number in range(12):
        save(tmp_path / "photos" / "ab"[number % 2] / f"{number}.png", rng.integers(0, 256, (9, 9, 3), np.uint8))
    trained = train(tmp_path / "photos", recipe={"epochs": 1}, init=tmp_path / "start")
    assert trained.network.in_maps == trained.data.train.images.shape[1] == 1


@pytest.mark.parametrize("arguments", [{"window": "round"}, {"margin": -1}])
def test_wrong_windows_and_margins_are_refused(small, arguments, without_shape_checks):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        train(small, **SMALL, **arguments)


def test_images_for_a_network_that_keeps_the_resolution_stay_small(tmp_path):
    fill(tmp_path, {"a": 6, "b": 6}, size=(100, 100))
    assert train(tmp_path, **SMALL).network.image_size == 64
    assert train(tmp_path, **SMALL, size=90).network.image_size == 90


def test_large_images_get_a_network_for_them_that_starts_from_a_shipped_one(tmp_path):
    fill(tmp_path, {"a": 6, "b": 6}, size=(70, 70))
    console = Console(file=io.StringIO(), width=200)
    trained = train(tmp_path, recipe={"epochs": 1}, console=console, hardware=Hardware("cpu"))
    assert (str(trained.network.architecture), trained.network.image_size) == (PRESETS["pyramid-small-224"], 70)
    assert trained.record["init"] == "pyramid-small-cifar10"
    assert "starts from 'pyramid-small-cifar10'" in console.file.getvalue()
    fresh = train(tmp_path, recipe={"epochs": 1}, hardware=Hardware("cpu"), init=None)
    assert fresh.record["init"] is None
    first = [next(iter(each.network.parameters())) for each in (trained, fresh)]
    shipped = next(iter(TIGraNet.from_pretrained("pyramid-small-cifar10").parameters()))
    assert (first[0] - shipped).abs().max() < 0.1 < (first[1] - shipped).abs().max()


def test_duplicates_are_counted_in_the_record_and_the_card(folder, tmp_path):
    shutil.copy(folder / "a" / "000.png", folder / "b" / "a$[x].png")
    trained = train(folder, tmp_path / "model", **SMALL)
    counts = json.loads((trained.folder / "training.json").read_text())["duplicates"]
    assert (counts["duplicate_images"], counts["conflicting_images"]) == (1, 2)
    assert counts["conflicting_examples"] == ["a/000.png", "b/a$[x].png"]
    excluded = [counts[f"excluded_{part}"] for part in ("train", "validation", "test")]
    assert sum(excluded) == 2
    assert sum(len(part.labels) for part in (trained.data.train, trained.data.validation, trained.data.test)) == 39
    assert "different labels: 2 ('a/000.png', 'b/a$[x].png')" in (trained.folder / "README.md").read_text()
    assert evaluate(trained.folder, folder).excluded_images == 0


def test_the_paper_is_quoted_for_its_networks_only(small):
    data = replace(small, name="mnist-012")
    assert train(data, architecture="paper-small", recipe={"epochs": 1}).paper.moved == "94 ± 0.42"
    assert train(data, **SMALL).paper is None
    assert train(small, architecture="paper-small", recipe={"epochs": 1}).paper is None


def test_a_data_set_in_memory_is_trained_on_without_saving(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = torch.get_rng_state()
    first, second = (train(small, **SMALL, boundary="torus") for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert (first.folder, first.picture) == (None, None)
    assert not list(tmp_path.iterdir())
    assert first.network.boundary == first.result.boundary == "torus"
    assert first.network.image_size == 28
    assert all(torch.equal(*pair) for pair in zip(first.network.parameters(), second.network.parameters(), strict=True))
    assert train(small, **SMALL, seed=1).result.recipe.seed == 1


def test_a_data_set_in_memory_is_known_by_its_hashes(small, tmp_path):
    train(small, tmp_path / "model", **SMALL)
    run = SavedRun.read(tmp_path / "model")
    assert run.training_hashes == {content_hash(image) for image in small.train.images}
    assert evaluate(tmp_path / "model", small).excluded_images == 0  # its own test images, as they were


def test_the_recipe_is_the_default_except_for_the_overrides(small):
    trained = train(small, architecture="MC[2,1]-S[1]", recipe={"epochs": 1, "warp": 0.0})
    recipe = trained.result.recipe
    assert (recipe.epochs, recipe.warp, recipe.zoom, recipe.batch_size) == (1, 0.0, 0.2, 50)


@pytest.mark.parametrize("step", ["measure", "model_card"])
def test_a_model_survives_an_error_after_training(folder, tmp_path, monkeypatch, step):
    """The model is saved before it is measured or drawn; an older one in the folder leaves no trace."""
    train(fill(tmp_path / "old", {"c": 10, "d": 10}, seed=1), tmp_path / "model", **SMALL, seed=7)

    def fail(*_, **__):
        raise MemoryError("too large")

    monkeypatch.setattr(module, step, fail)
    with pytest.raises(MemoryError, match="too large") as error:
        train(folder, tmp_path / "model", **SMALL, overwrite=True)
    assert str(tmp_path / "model") in " ".join(error.value.__notes__)
    assert TIGraNet.from_pretrained(tmp_path / "model").class_names == ("a", "b")
    assert SavedRun.read(tmp_path / "model").seed == 0
    assert evaluate(tmp_path / "model", folder).excluded_images == 0


def test_an_error_during_training_saves_nothing(folder, tmp_path):
    with pytest.raises(ValueError, match="epochs") as error:
        train(folder, tmp_path / "model", architecture="SC[2,2]-S[2]", recipe={"epochs": 0})
    assert not hasattr(error.value, "__notes__")
    assert not (tmp_path / "model").exists()


def test_a_training_is_resumed_from_its_checkpoint(folder, tmp_path):
    assert not can_resume(tmp_path / "model")
    first = train(folder, tmp_path / "model", **SMALL)
    assert can_resume(tmp_path / "model")
    second = train(folder, tmp_path / "model", **SMALL, resume=True)
    assert all(torch.equal(*pair) for pair in zip(first.network.parameters(), second.network.parameters(), strict=True))
    with pytest.raises(ValueError, match="folder"):
        train(folder, **SMALL, resume=True)


def test_a_file_in_place_of_the_output_folder_is_found_before_the_data_are_read(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file"):
        train(tmp_path / "no data", tmp_path / "file")


def test_without_test_images_the_record_and_the_card_say_so_and_the_picture_has_validation_images(
    tmp_path, monkeypatch
):
    for part, count in (("train", 10), ("val", 4)):
        fill(tmp_path / "photos" / part, {"a": count, "b": count}, seed=count)
    drawn = []
    monkeypatch.setattr(rotated_examples, "save_rotated", lambda *arguments: drawn.append((arguments[2], arguments[5])))
    trained = train(tmp_path / "photos", tmp_path / "model", **SMALL)
    ((images, part),) = drawn
    assert torch.equal(images.images, trained.data.validation.images)
    assert part == "validation"
    assert len(trained.data.test.labels) == 0
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert [record[name] for name in ("test", "moved", "nearest", "robustness", "drop")] == [None] * 5
    assert record["validation"] == trained.result.validation is not None
    assert record["untested_classes"] == ["a", "b"]
    assert "no test images" in (tmp_path / "model" / "README.md").read_text()
    with pytest.raises(ValueError, match="photos has no test images"):
        evaluate(tmp_path / "model", tmp_path / "photos")
    fill(tmp_path / "photos" / "test", {"a": 3, "b": 3}, seed=9)
    assert evaluate(tmp_path / "model", tmp_path / "photos").robustness.images == 6


def test_without_test_and_validation_images_there_is_no_picture(small, tmp_path):
    nothing = small.test.take([])
    trained = train(replace(small, test=nothing, validation=nothing), tmp_path / "model", **SMALL)
    assert trained.picture is None
    assert (trained.result.test, trained.result.validation) == (None, None)


def test_classes_without_test_images_are_in_the_record_and_on_the_card(tmp_path):
    fill(tmp_path / "photos", {"a": 20, "b": 1, "c": 1})
    trained = train(tmp_path / "photos", tmp_path / "model", train_images=5, **SMALL)
    assert trained.record["untested_classes"] == ["b", "c"]
    assert "'b', 'c'" in (tmp_path / "model" / "README.md").read_text()


def test_a_saved_model_is_not_overwritten_unless_asked_to(folder, tmp_path):
    train(folder, tmp_path / "model", **SMALL)
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    with pytest.raises(FileExistsError, match="--overwrite"):
        train(tmp_path / "no data", tmp_path / "model", **SMALL)  # found before the data are read
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    (tmp_path / "model" / "config.json").unlink()  # as if it had been interrupted before the end
    with pytest.raises(FileExistsError, match=r"--resume.*--overwrite"):
        train(folder, tmp_path / "model", **SMALL)
    train(folder, tmp_path / "model", **SMALL, seed=1, overwrite=True)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() != before


def test_quick_saves_a_model_like_any_other(folder, tmp_path):
    console = Console(file=io.StringIO(), width=80)
    trained = train(folder, tmp_path / "model", quick=True, console=console)
    assert trained.comparison is None
    assert trained.network is trained.first.network
    loaded = TIGraNet.from_pretrained(tmp_path / "model")
    assert (loaded.class_names, loaded.image_size, loaded.training) == (("a", "b"), 12, False)
    assert torch.equal(loaded(trained.data.test.images), trained.network(trained.data.test.images))
    assert evaluate(tmp_path / "model", folder).robustness.upright == trained.result.test
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["quick"]
    assert record["first_answer"]["accuracy"] == trained.first.accuracy
    assert "logistic regression" in (tmp_path / "model" / "README.md").read_text()
    messages = console.file.getvalue()
    assert "5-fold cross-validation of 28 training images" in messages
    assert "recipe:" not in messages
    with pytest.raises(ValueError, match="resume"):
        train(folder, tmp_path / "model", quick=True, resume=True)


def test_a_training_starts_with_the_accuracy_to_beat(small, monkeypatch):
    monkeypatch.setattr(module, "SHORT_TRAINING", 2)
    console = Console(file=io.StringIO(), width=80)
    trained = train(small, architecture="SC[2,2]-S[2]", recipe={"epochs": 2}, first=True, console=console)
    assert "the accuracy to beat" in console.file.getvalue()
    assert trained.comparison.trained == trained.result.test
    assert trained.comparison.images == 30
    assert train(small, **SMALL, first=True).first is None  # a training of one step


def test_a_resumed_training_has_the_record_of_an_uninterrupted_one(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHORT_TRAINING", 2)
    options = {"architecture": "SC[2,2]-S[2]", "first": True}
    train(folder, tmp_path / "model", recipe={"epochs": 4}, **options)
    resumed = train(folder, tmp_path / "model", recipe={"epochs": 4}, resume=True, **options)
    whole = train(folder, tmp_path / "other", recipe={"epochs": 4}, **options)
    for record in (resumed.record, whole.record):
        record["first_answer"].pop("seconds")
    assert resumed.record["first_answer"] == whole.record["first_answer"]
    assert resumed.comparison == whole.comparison


def test_a_training_starts_from_a_saved_network(small, tmp_path):
    first = train(small, tmp_path / "model", architecture="SC[2,2]-S[2]-FC[4]", recipe={"epochs": 2}, margin=1)
    data = replace(small, class_names=("2", "0", "new"))
    rate = {"epochs": 1, "learning_rate": 1e-12, "schedule": "cosine"}
    second = train(data, init=tmp_path / "model", recipe=rate)
    assert (str(second.network.architecture), second.network.margin) == ("SC[2,2]-S[2]-FC[4]", 1)
    assert second.network.class_names == ("2", "0", "new")
    old, new = (each.network.classifier[-1].weight for each in (first, second))
    torch.testing.assert_close(new[:2], old[[2, 0]])
    assert second.record["init"] == str(tmp_path / "model")
    quick = train(data, init=tmp_path / "model", quick=True)
    images = small.test.images
    torch.testing.assert_close(quick.network.features(images), first.network.features(images))
    assert str(quick.network.architecture) == "SC[2,2]-S[2]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"architecture": "paper"}, "architecture"),
        ({"boundary": "torus"}, "boundary"),
        ({"window": "disc"}, "window"),
        ({"margin": 2}, "margin"),
    ],
)
def test_options_that_contradict_the_network_to_start_from_are_errors(small, arguments, words):
    with pytest.raises(ValueError, match=f"{words}.*paper-mnist-012"):
        train(small, init="paper-mnist-012", **arguments)


def test_a_network_for_other_channels_is_no_start(small):
    image = small.train.images[:6].expand(-1, 3, -1, -1)
    part = small.train._replace(images=image, labels=small.train.labels[:6])
    with pytest.raises(ValueError, match=r"1 channels.*'paper-mnist-012'.*3"):
        train(replace(small, train=part, validation=part, test=part), init="paper-mnist-012")
    with pytest.raises(FileNotFoundError, match="no-such-network"):
        train(small, init="no-such-network")


def test_a_first_answer_that_fails_does_not_stop_the_training(small, monkeypatch):
    monkeypatch.setattr(module, "SHORT_TRAINING", 1)
    part = small.train._replace(labels=torch.zeros_like(small.train.labels))
    console = Console(file=io.StringIO(), width=80)
    trained = train(replace(small, train=part), **SMALL, first=True, console=console)
    assert trained.first is None
    assert "no first answer: expected training images of at least 2 classes" in console.file.getvalue()
