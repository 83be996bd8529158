import io
import json
import re
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from images import fill
from tigranet import TIGraNet, choose_architecture
from tigranet.architecture import PRESETS
from tigranet.choose_architecture import PresetRange
from tigranet.stop_request import is_end_requested, raise_if_stop_requested, request_stop, withdraw_stop
from tigranet.training import Hardware, Recipe
from tigranet.training.checkpoints import Checkpoints
from tigranet.training.lightning_module import Diverged
from tigranet.workflows import choose_network
from tigranet.workflows import larger_network as module
from tigranet.workflows.choose_network import NetworkOptions, default_network
from tigranet.workflows.evaluate import evaluate
from tigranet.workflows.larger_network import (
    GOOD_ACCURACY,
    check_extra_minutes,
    expected_seconds,
    is_at_least_as_good,
    is_begun,
    larger_network_for,
    larger_network_record,
    mean_accuracy,
    train_larger_network,
)
from tigranet.workflows.model_calibration import read_calibration
from tigranet.workflows.predict import predict
from tigranet.workflows.report import report
from tigranet.workflows.shard_images import write_shards
from tigranet.workflows.train import can_resume, train

FAST, ACCURATE = "paper-small", "oriented-small"
CPU = Hardware("cpu")


@pytest.fixture(autouse=True)
def short_trainings(monkeypatch):
    """Two small presets as defaults, both trained for four epochs or fewer."""
    monkeypatch.setattr(choose_architecture, "CPU_PRESETS", (PresetRange(FAST),))
    monkeypatch.setattr(choose_architecture, "GPU_PRESETS", (PresetRange(ACCURATE),))
    monkeypatch.setattr(choose_architecture, "ALL_EPOCHS_IMAGES", 0)  # the larger network has half of the epochs
    chosen = choose_network.choose_recipe

    def short_recipe(*arguments, **fields):
        return chosen(*arguments, **({"epochs": 4} | fields))

    monkeypatch.setattr(choose_network, "choose_recipe", short_recipe)
    yield
    withdraw_stop()


@pytest.fixture
def accuracies(monkeypatch):
    """Set the accuracies that are measured on validation images, those of the first network first."""

    def set_accuracies(*values):
        remaining = iter(values)
        monkeypatch.setattr(module, "mean_accuracy", lambda *_: next(remaining))

    return set_accuracies


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=300)


def larger(data, console=None, extra_minutes=60.0, **options):
    first, accurate = (default_network(data, accurate, NetworkOptions()) for accurate in (False, True))
    network = first.new_network(data).eval()
    return train_larger_network(accurate, first, network, data, extra_minutes, console, **options)


def chosen_for(data, hardware=CPU, extra_minutes=60.0, **recipe):
    first = default_network(data, False, NetworkOptions(recipe=recipe))
    return larger_network_for(first, data, hardware, extra_minutes)


# When it is trained.


@pytest.mark.parametrize("accuracy", [100.0, GOOD_ACCURACY])
def test_it_is_not_trained_after_a_network_that_makes_few_mistakes(small, accuracies, console, accuracy):
    accuracies(accuracy)
    assert larger(small, console) is None
    assert f"paper-small: {accuracy} % of 30 validation images" in console.file.getvalue()
    assert "few mistakes" in console.file.getvalue()
    accuracies(GOOD_ACCURACY - 0.1, 99.0)
    assert larger(small) is not None


def test_there_is_one_for_a_training_on_a_cpu_that_compares_networks(small, monkeypatch):
    assert chosen_for(small).name == ACCURATE
    assert chosen_for(small, learning_rate=1e-3).recipe.learning_rate == 1e-3
    assert chosen_for(replace(small, validation=small.validation.take([]))) is None
    assert chosen_for(small, extra_minutes=0.0) is None
    assert chosen_for(small, epochs=3) is chosen_for(small, patience=3) is None
    assert chosen_for(small, Hardware("cpu", devices=2)) is chosen_for(small, Hardware("cpu", nodes=2)) is None
    monkeypatch.setattr(choose_architecture, "GPU_PRESETS", (PresetRange(FAST),))
    assert chosen_for(small) is None


def test_there_is_none_on_a_gpu(small, monkeypatch):
    assert chosen_for(small, Hardware("gpu")) is None
    monkeypatch.setattr(module, "trains_on_cuda", lambda accelerator: accelerator != "cpu")
    assert chosen_for(small, Hardware()) is None
    assert chosen_for(small, CPU) is not None
    monkeypatch.setattr(module, "trains_on_cuda", lambda _: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert chosen_for(small, Hardware()) is None
    assert chosen_for(small, CPU) is not None


def test_a_training_that_takes_too_long_is_suggested_with_the_minutes_that_allow_it(
    small, accuracies, console, monkeypatch
):
    durations = iter([601.0, 1.2 * 601.0])  # it varies
    monkeypatch.setattr(module, "expected_seconds", lambda *_: next(durations))
    accuracies(50.0, 50.0, 60.0)
    assert larger(small, console, extra_minutes=10.0) is None
    minutes = re.search(r"--extra-minutes (\d+)", console.file.getvalue())
    assert larger(small, extra_minutes=float(minutes[1])).is_kept


def test_the_user_is_told_how_long_it_takes_and_how_to_stop(small, accuracies, console, monkeypatch):
    monkeypatch.setattr(module, "expected_seconds", lambda *_: 300.0)
    accuracies(50.0, 60.0)
    larger(small, console)
    messages = console.file.getvalue()
    assert "takes about 5 min" in messages
    assert "Ctrl-C keeps paper-small" in messages
    assert "network: oriented-small, " in messages
    assert "epochs 2" in messages
    assert "oriented-small 60.0 %, paper-small 50.0 %; oriented-small is kept" in messages


@pytest.mark.parametrize("minutes", [-1.0, float("nan"), float("inf")])
def test_wrong_durations_are_refused(minutes, small):
    with pytest.raises(ValueError, match="extra_minutes"):
        check_extra_minutes(minutes)
    with pytest.raises(ValueError, match="extra_minutes"):
        train(small, extra_minutes=minutes)


# Which network is kept.


@pytest.mark.parametrize(("first", "second", "is_kept"), [(50.0, 60.0, True), (50.0, 50.0, True), (90.0, 50.0, False)])
def test_the_better_one_is_kept(small, accuracies, first, second, is_kept):
    accuracies(first, second)
    result = larger(small)
    assert result.is_kept == is_kept
    assert (result.first_accuracy, result.accuracy) == (first, second)
    assert str(result).endswith(f"{ACCURATE if is_kept else FAST} is kept")


def test_a_network_that_is_kept_although_it_is_worse_comes_with_a_reason(small, accuracies):
    accuracies(51.0, 50.0)
    assert str(larger(small)).endswith("oriented-small is kept, because the difference may be chance")


def test_a_small_difference_on_few_images_is_taken_for_chance():
    images = 100
    error = 100 * (0.8 * 0.2 / images) ** 0.5
    assert is_at_least_as_good(80.0, 80.0 + 0.9 * error, images)
    assert not is_at_least_as_good(80.0, 80.0 + 1.1 * error, images)
    assert not is_at_least_as_good(0.0, 1.0, images)


def test_the_accuracy_is_the_mean_of_images_as_they_are_and_rotated(small):
    class Upright(torch.nn.Module):
        """Right about images that it knows, and wrong about all others."""

        def forward(self, images):
            logits = torch.zeros(len(images), len(small.class_names))
            for row, image in enumerate(images):
                known = (small.validation.images == image).flatten(1).all(1).nonzero()
                right = int(small.validation.labels[known[0, 0]]) if len(known) else -1
                logits[row] = -1.0
                logits[row, right if len(known) else 0] = 1.0
            return logits

    rotated = 100 * float((small.validation.labels == 0).float().mean())
    assert mean_accuracy(Upright(), small, seed=0) == pytest.approx((100 + rotated) / 2, abs=3)


# When it is stopped.


def test_ctrl_c_keeps_the_first_network(small, accuracies, monkeypatch, console, tmp_path):
    def interrupted(*_, **__):
        request_stop()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "train_module", interrupted)
    accuracies(50.0)
    result = larger(small, console, folder=tmp_path)
    assert (result.network, result.accuracy, result.is_kept) == (None, None, False)
    assert "did not finish, paper-small is kept; the same command with --resume" in console.file.getvalue()
    raise_if_stop_requested()  # the rest of the command is not stopped


def test_ctrl_c_while_the_larger_network_is_measured_keeps_the_first_one(small, monkeypatch):
    measurements = iter([lambda: 50.0])

    def measure(*_):
        return next(measurements, interrupt)()

    def interrupt():
        request_stop()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "mean_accuracy", measure)
    assert not larger(small).is_kept
    raise_if_stop_requested()


def test_ctrl_c_while_the_first_network_is_measured_keeps_it(small, monkeypatch):
    def interrupt(*_):
        request_stop()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "mean_accuracy", interrupt)
    result = larger(small)
    assert not result.is_kept
    json.loads(json.dumps(larger_network_record(result), allow_nan=False))
    raise_if_stop_requested()


def test_sigterm_ends_the_process(small, accuracies, monkeypatch, tmp_path):
    def terminated(*_, **__):
        request_stop(end=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "train_module", terminated)
    accuracies(50.0)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        larger(small, folder=tmp_path)
    assert is_end_requested()
    assert "paper-small is trained and saved; the same command with --resume" in " ".join(interrupt.value.__notes__)


ERRORS = [MemoryError("no memory"), RuntimeError("can't allocate"), Diverged("diverged"), OSError("no space")]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("step", ["expected_seconds", "train_module"])
def test_an_error_keeps_the_first_network(small, accuracies, monkeypatch, console, step, error):
    def failing(*_, **__):
        raise error

    monkeypatch.setattr(module, step, failing)
    accuracies(50.0)
    assert not larger(small, console).is_kept
    assert f"paper-small is kept: {error}" in console.file.getvalue()


# How long it takes.


def test_the_expected_duration_grows_with_images_and_epochs_and_changes_nothing(small):
    network = TIGraNet(FAST, 3)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    seconds = [expected_seconds(network, small.train, Recipe(epochs=epochs)) for epochs in (1, 1_000)]
    assert torch.equal(torch.rand(3), expected)
    assert seconds[1] > 10 * seconds[0] > 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


# Within a training.


def test_the_larger_network_becomes_the_model(folder, tmp_path, accuracies, console):
    accuracies(50.0, 75.0)
    trained = train(folder, tmp_path / "model", hardware=CPU, console=console)
    assert trained.larger.is_kept
    assert str(trained.network.architecture) == PRESETS[ACCURATE]
    assert str(TIGraNet.from_pretrained(tmp_path / "model").architecture) == PRESETS[ACCURATE]
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["is_larger"]
    assert record["recipe"]["epochs"] == trained.result.recipe.epochs == 2
    summary = record["larger_network"]
    assert (summary["first"], summary["first_accuracy"], summary["larger_accuracy"]) == (FAST, 50.0, 75.0)
    assert trained.result.seconds >= summary["larger_seconds"] > 0
    assert evaluate(tmp_path / "model", folder).robustness.upright == trained.result.test
    assert "a larger network follows if it is worth the time" in console.file.getvalue()
    assert console.file.getvalue().count("expected duration") <= 1


def test_the_report_has_the_curve_of_the_network_that_is_kept(folder, tmp_path, accuracies):
    for name, second in (("larger", 75.0), ("first", 10.0)):
        accuracies(50.0, second)
        trained = train(folder, tmp_path / name, hardware=CPU)
        measured = report(tmp_path / name, folder, cnn=False, curve_images=1).report
        assert len(measured.history.epochs) == trained.result.recipe.epochs


def test_the_first_network_stays_the_model_if_it_is_better(folder, tmp_path, accuracies):
    accuracies(90.0, 10.0)
    trained = train(folder, tmp_path / "model", hardware=CPU)
    alone = train(folder, architecture="fast", hardware=CPU)
    assert not trained.record["is_larger"]
    assert trained.larger.network is not None
    images = trained.data.test.images
    assert torch.equal(trained.network(images), alone.network(images))
    assert alone.larger is None


@pytest.mark.parametrize("options", [{"architecture": "fast"}, {"recipe": {"epochs": 1}}, {"extra_minutes": 0.0}])
def test_other_trainings_have_one_network(small, options):
    trained = train(small, hardware=CPU, **options)
    assert trained.larger is None
    assert trained.record["larger_network"] is None
    assert str(trained.network.architecture) == PRESETS[FAST]


def test_the_accurate_network_can_be_trained_alone(small):
    trained = train(small, architecture="accurate", hardware=CPU)
    assert trained.larger is None
    assert str(trained.network.architecture) == PRESETS[ACCURATE]
    assert trained.result.recipe.epochs == 2


@pytest.mark.parametrize("options", [{"quick": True}, {"init": "paper-mnist-012"}])
def test_a_speed_contradicts_what_trains_no_default_network(small, options):
    with pytest.raises(ValueError, match="leave out architecture 'fast'"):
        train(small, architecture="fast", **options)


def kill_after_the_first_epoch_of_the_larger_network(monkeypatch):
    """Let SIGTERM end trainings in the second network, after its first checkpoint. Return how to undo that."""
    original = Checkpoints.on_train_epoch_end

    def stop(checkpoints, trainer, *arguments):
        original(checkpoints, trainer, *arguments)
        if checkpoints.folder.name == "larger":
            request_stop(end=True)
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "on_train_epoch_end", stop)
    return lambda: (withdraw_stop(), monkeypatch.setattr(Checkpoints, "on_train_epoch_end", original))


def test_a_killed_process_goes_on_with_the_larger_network(folder, tmp_path, accuracies, monkeypatch):
    accuracies(50.0, 75.0)
    expected = train(folder, tmp_path / "whole", hardware=CPU)
    restore = kill_after_the_first_epoch_of_the_larger_network(monkeypatch)
    accuracies(50.0)
    with pytest.raises(KeyboardInterrupt):
        train(folder, tmp_path / "model", hardware=CPU)
    assert str(TIGraNet.from_pretrained(tmp_path / "model").architecture) == PRESETS[FAST]
    assert can_resume(tmp_path / "model")
    restore()
    accuracies(50.0, 75.0)
    resumed = train(folder, tmp_path / "model", hardware=CPU, resume=True)
    images = expected.data.test.images
    assert torch.equal(resumed.network(images), expected.network(images))


def test_a_new_training_forgets_the_checkpoints_of_an_earlier_larger_network(folder, tmp_path, accuracies):
    accuracies(50.0, 75.0)
    train(folder, tmp_path / "model", hardware=CPU)
    assert (tmp_path / "model" / "checkpoints" / "larger" / "last.ckpt").is_file()
    train(folder, tmp_path / "model", hardware=CPU, architecture="fast", overwrite=True)
    assert not (tmp_path / "model" / "checkpoints" / "larger").exists()


@pytest.mark.usefixtures("whole_results")
def test_a_model_can_be_used_while_the_larger_network_is_trained(folder, tmp_path, accuracies, monkeypatch):
    other = fill(tmp_path / "others", {"c": 20, "d": 20}, seed=1)
    train(other, tmp_path / "model", hardware=CPU, architecture=ACCURATE, recipe={"epochs": 1})
    restore = kill_after_the_first_epoch_of_the_larger_network(monkeypatch)
    accuracies(50.0)
    with pytest.raises(KeyboardInterrupt):
        train(folder, tmp_path / "model", hardware=CPU, overwrite=True)
    restore()
    assert not (tmp_path / "model" / "rotated.png").exists()  # that of the earlier model
    assert read_calibration(tmp_path / "model", TIGraNet.from_pretrained(tmp_path / "model")) is not None
    files = sorted(folder.rglob("*.png"))[:3]
    answers = list(predict(tmp_path / "model", files).predictions)
    assert len(answers) == 3
    assert report(tmp_path / "model", folder, cnn=False, curve_images=1).report is not None


def test_a_finished_model_stays_the_larger_network_when_it_is_resumed(folder, tmp_path, accuracies, monkeypatch):
    accuracies(50.0, 75.0)
    train(folder, tmp_path / "model", hardware=CPU)
    assert is_begun(tmp_path / "model" / "checkpoints")
    before = TIGraNet.from_pretrained(tmp_path / "model").state_dict()
    monkeypatch.setattr(module, "expected_seconds", lambda *_: 1e9)
    accuracies(99.0, 99.0)  # neither of the reasons against it counts
    assert train(folder, tmp_path / "model", hardware=CPU, resume=True).larger.is_kept
    after = TIGraNet.from_pretrained(tmp_path / "model").state_dict()
    assert not [name for name, tensor in before.items() if not torch.equal(tensor, after[name])]


def test_a_checkpoint_of_another_larger_network_is_an_error(folder, tmp_path, accuracies):
    accuracies(50.0, 75.0)
    train(folder, tmp_path / "model", hardware=CPU)
    checkpoint = tmp_path / "model" / "checkpoints" / "larger" / "last.ckpt"
    checkpoint.write_bytes((tmp_path / "model" / "checkpoints" / "last.ckpt").read_bytes())
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    accuracies(50.0)
    with pytest.raises(ValueError, match="belongs to a different training"):
        train(folder, tmp_path / "model", hardware=CPU, resume=True)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == weights


def test_the_record_names_the_larger_network_as_soon_as_it_is_saved(folder, tmp_path, accuracies, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("too large")

    monkeypatch.setattr("tigranet.workflows.train.measure", fail)
    accuracies(50.0, 75.0)
    with pytest.raises(MemoryError):
        train(folder, tmp_path / "model", hardware=CPU)
    assert json.loads((tmp_path / "model" / "training.json").read_text())["is_larger"]
    assert len(report(tmp_path / "model", folder, cnn=False, curve_images=1).report.history.epochs) == 2


def test_the_header_announces_a_larger_network_only_if_there_may_be_one(small, console, accuracies):
    accuracies(100.0)
    train(small, hardware=CPU, console=console)
    assert "a larger network follows" in console.file.getvalue()
    console.file = io.StringIO()
    train(replace(small, validation=small.validation.take([])), hardware=CPU, console=console)
    assert "a larger network follows" not in console.file.getvalue()


def test_shards_have_a_larger_network_too(folder, tmp_path, accuracies):
    write_shards(folder, tmp_path / "shards", workers=1)
    accuracies(50.0, 75.0)
    assert train(tmp_path / "shards", tmp_path / "model", hardware=CPU).larger.is_kept
