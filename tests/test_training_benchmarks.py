"""The benchmarks that train compare networks fairly: the same time, other classes, images that are in no training."""

import csv
import os
from types import SimpleNamespace

import pytest
import torch
from benchmarks import (
    fine_tuning,
    fine_tuning_summary,
    pinned_workers,
    resumed_table,
    small_folders,
    small_folders_summary,
    starting_networks,
    timed_rivals,
    transfer_sets,
)
from torch import nn

from tigranet import TIGraNet
from tigranet.data import DataSet, LabelledImages
from tigranet.data.augment.rigid import ROTATED
from tigranet.training import Recipe


def write_rows(path, rows):
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def small_data(images=12, classes=3, test=6):
    labels = torch.arange(images + test) % classes
    everything = LabelledImages(torch.rand(images + test, 1, 8, 8), labels)
    train, rest = everything.take(list(range(images))), everything.take(list(range(images, images + test)))
    return DataSet("small", tuple("abc"[:classes]), train, train.take([]), rest, ROTATED)


class TestPinnedWorkers:
    def test_each_process_has_its_own_core(self):
        available = sorted(os.sched_getaffinity(0))[:2]
        results = list(pinned_workers.run_pinned([(0,)] * 6, os.sched_getaffinity, len(available), 1))
        assert [job for job, _ in results] == [(0,)] * 6
        assert {frozenset(cores) for _, cores in results} <= {frozenset([core]) for core in available}
        assert sorted(os.sched_getaffinity(0))[:2] == available

    def test_a_process_has_as_many_threads_as_cores_and_no_gpu(self, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "7")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        results = dict(pinned_workers.run_pinned([("OMP_NUM_THREADS",), ("CUDA_VISIBLE_DEVICES",)], os.getenv, 1, 1))
        assert results == {("OMP_NUM_THREADS",): "1", ("CUDA_VISIBLE_DEVICES",): ""}
        assert os.environ["OMP_NUM_THREADS"] == "7"
        assert "CUDA_VISIBLE_DEVICES" not in os.environ

    def test_an_error_of_a_job_ends_the_others(self):
        with pytest.raises(ZeroDivisionError):
            list(pinned_workers.run_pinned([(1, 0), (1, 1)], divmod, 1, 1))

    def test_too_few_cores_are_an_error(self):
        with pytest.raises(ValueError, match="use at most"):
            next(pinned_workers.run_pinned([(0,)], abs, 10_000, 2))


def test_a_table_of_other_columns_is_not_continued(tmp_path, capsys):
    path = tmp_path / "t.csv"
    resumed_table.measure_rows(path, ("a",), [(1,)], lambda a: {"b": a})
    before = path.read_text()
    with pytest.raises(ValueError, match="other, a"):
        resumed_table.measure_rows(path, ("other", "a"), [(1, 2)], lambda other, a: {"b": a})
    with pytest.raises(ValueError, match="a, c"):
        resumed_table.measure_rows(path, ("a",), [(2,)], lambda a: {"c": a})
    assert path.read_text() == before
    capsys.readouterr()


class TestEqualTime:
    @pytest.mark.parametrize("start", [0.0, 2.5])
    def test_the_number_of_epochs_takes_the_time_whatever_the_start_takes(self, start):
        def timed(epochs):
            return timed_rivals.TimedTraining(nn.Identity(), start + 0.25 * epochs, epochs)

        assert timed_rivals.epochs_for(60, timed(5), timed(40)) == round((60 - start) / 0.25)

    @pytest.mark.parametrize(("short", "long"), [(3.0, 2.0), (0.1, 8.0)])
    def test_times_that_contradict_each_other_give_the_mean_time_of_an_epoch(self, short, long):
        pair = timed_rivals.TimedTraining(nn.Identity(), short, 5), timed_rivals.TimedTraining(nn.Identity(), long, 20)
        assert timed_rivals.epochs_for(40, *pair) == round(40 / (long / 20))

    def test_the_rival_is_trained_from_the_same_random_weights_with_its_own_number_of_epochs(self, monkeypatch):
        initial, epochs = [], []

        def train_module(network, data, recipe, device):
            initial.append(network.weight.detach().clone())
            epochs.append(recipe.epochs)
            return 1 + 0.5 * recipe.epochs

        monkeypatch.setattr(timed_rivals, "train_module", train_module)
        timed = timed_rivals.train_for(100, lambda: nn.Linear(3, 2), small_data(), Recipe(1, seed=4))
        assert all(torch.equal(weight, initial[0]) for weight in initial)
        assert timed.epochs == epochs[-1] == 198
        assert timed.seconds == 100

    @pytest.mark.parametrize("rival", timed_rivals.RIVALS)
    def test_rivals_see_rotated_images_and_have_about_as_many_parameters(self, rival):
        data = small_data()
        network = TIGraNet("pyramid-small", 3)
        built = timed_rivals.RIVALS[rival](network, data)
        assert built(data.train.images).shape == (12, 3)
        assert timed_rivals.rival_recipe(built, data, 0).turned
        sizes = [sum(parameter.numel() for parameter in net.parameters()) for net in (network, built)]
        assert 0.8 < sizes[1] / sizes[0] < 1.5


def test_a_draw_of_a_small_folder_has_all_columns_of_its_page(tmp_path, monkeypatch):
    monkeypatch.setitem(small_folders.SETS, "steel", (12, lambda images, seed, folder, test_images: small_data(images)))
    monkeypatch.setattr(timed_rivals, "train_module", lambda network, data, recipe, device: 0.1 * recipe.epochs)
    network, training = TIGraNet("SC[2,1]-S[1]", 3).eval(), []

    def train(data, recipe, **options):
        assert not len(data.test.labels)
        training.append(recipe)
        return SimpleNamespace(network=network, result=SimpleNamespace(seconds=5.0, recipe=Recipe(7)))

    monkeypatch.setattr(small_folders, "train", train)
    answer = SimpleNamespace(network=network, seconds=1.0, accuracy=50.0)
    monkeypatch.setattr(small_folders, "first_answer", lambda data, **options: answer)
    columns = small_folders.run(tmp_path, ("CNN",), None, "steel", 12, 0)
    assert training == [{"epochs": 1}, None]  # a warm-up, then the default
    assert columns["CNN, epochs"] == 50
    assert columns["CNN, s"] == 5
    assert columns["test images"] == 6
    machine = {"cpu": "C", "threads": 2, "tigranet": "1", "torch": "2"}
    rows = [{"data": "steel", "images": 12, "seed": seed} | columns | machine for seed in (0, 1)]
    for row, ours, cnn in zip(rows, (90, 94), (89, 89), strict=True):
        row |= {"ours, rotated": ours, "CNN, rotated": cnn, "training, s": 40, "CNN, s": 39}
    write_rows(tmp_path / "t.csv", rows)
    small_folders_summary.write_summary(tmp_path / "t.csv")
    page = (tmp_path / "t.md").read_text()
    assert "| 92.0 ± 2.0 | 89.0 ± 0.0 | +3.0 ± 2.0 | yes |" in page
    assert "98 to 98 %" in page


@pytest.fixture
def plankton(monkeypatch):
    """Many images of 18 classes and few of two, whose first pixel is their number."""
    labels = torch.cat([torch.arange(18).repeat_interleave(160), torch.tensor([18, 19, 19])])
    images = torch.arange(len(labels), dtype=torch.float32).reshape(-1, 1, 1, 1).expand(-1, 1, 2, 2)
    part = LabelledImages(images, labels)
    data = DataSet("plankton", tuple(f"c{label}" for label in range(20)), part, part.take([]), part.take([]), ROTATED)
    monkeypatch.setattr(transfer_sets, "_load", lambda name, folder: data)
    return data


@pytest.mark.parametrize("seed", [0, 1])
def test_a_start_and_a_task_have_no_class_in_common(plankton, tmp_path, seed):
    start, task = transfer_sets.plankton_start(tmp_path), transfer_sets.plankton_task(40, seed, tmp_path)
    assert not set(start.class_names) & set(task.class_names)
    assert {"c18", "c19"} <= set(start.class_names)
    numbers = [set(part.images[:, 0, 0, 0].tolist()) for part in (start.train, task.train, task.validation)]
    assert len(set.union(*numbers)) == sum(map(len, numbers))
    assert task.train.labels.bincount().tolist() == [5] * 8
    assert len(task.validation.labels) == transfer_sets.VALIDATION_IMAGES
    assert not len(task.test.labels)


def test_trainings_start_from_random_weights_or_from_saved_networks(tmp_path, monkeypatch):
    data, layers = small_data(), "SC[2,1]-S[1]"
    data = DataSet(data.name, data.class_names, data.train, data.test, data.train.take([]), ROTATED)
    monkeypatch.setitem(transfer_sets.STARTS, "plankton", (lambda folder: data, 1))
    monkeypatch.setitem(transfer_sets.TASKS, "steel", lambda images, seed, folder: data)
    assert "12 images" in starting_networks.train_start(tmp_path, tmp_path, 1, layers, "plankton")
    monkeypatch.setattr(starting_networks, "train_module", lambda *_: pytest.fail("it is trained already"))
    assert "12 images" in starting_networks.train_start(tmp_path, tmp_path, 1, layers, "plankton")
    jobs = list(fine_tuning.all_jobs([layers], ["steel"], [12], ["random", "plankton", "steel"], 1, tmp_path))
    methods = [job[3:6] for job in jobs]
    assert methods[:2] == [("random", "all", 1.0), ("plankton", "all", 1.0)]
    assert sorted(methods[2:]) == [
        ("plankton", "all", 0.3),
        ("plankton", "quarter", 0.3),
        ("plankton", "quarter", 1.0),
        ("random", "quarter", 1.0),
    ]
    monkeypatch.setattr(fine_tuning, "fit", lambda network, *_, **__: network.eval())
    rows = [dict(zip(fine_tuning.KEYS, job, strict=True)) | fine_tuning.run(tmp_path, tmp_path, *job) for job in jobs]
    machine = {"cpu": "C", "gpu": "", "tigranet": "1", "torch": "2"}
    write_rows(tmp_path / "f.csv", [row | machine | {"rotated": 50 + 10 * row["rate"]} for row in rows])
    fine_tuning_summary.write_summary(tmp_path / "f.csv")
    assert "| -7.0 |" in (tmp_path / "f.md").read_text()
