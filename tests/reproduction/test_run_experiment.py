from dataclasses import replace
from unittest.mock import Mock

import torch

from tigranet import TIGraNet
from tigranet.reproduction import experiment_data
from tigranet.reproduction import run_experiment as module
from tigranet.reproduction.render import select_records
from tigranet.reproduction.run_experiment import build_network, load_cached, network_folder, run_experiment
from tigranet.reproduction.tables import TABLES


def test_networks_are_built_for_the_images(small):
    data = load_cached("mnist-012", 0, None)
    rows = [row for table in TABLES.values() for row in table.rows if row.method != "GMRResNet"]  # needs a package
    different = {(row.method, row.layers, str(row.options), row.without): row for row in rows}
    for row in different.values():
        net = build_network(row, data)
        if row.method != "DeepScat":  # it gives no answer before it is fitted
            with torch.inference_mode():
                assert net.eval()(torch.rand(1, 1, 28, 28)).shape == (1, 3)


def test_the_images_are_those_of_the_experiment(small, monkeypatch):
    spy = Mock(wraps=module.train_and_measure)
    monkeypatch.setattr(module, "train_and_measure", spy)
    row = replace(TABLES["table2"].rows[2], windowed=True, on_validation=True, precision="32")
    record = run_experiment(row, "mnist-012", seed=0, epochs=1, columns=("balanced",))
    data, hardware = spy.call_args.args[2], spy.call_args.kwargs["hardware"]
    assert torch.equal(data.test.images, data.validation.images)
    assert hardware.precision == "32"
    assert (record["windowed"], record["precision"], record["measured on"]) == (True, "32", "validation")
    assert "balanced_accuracy" in record["scores"]
    assert "rotations" not in record


def test_a_part_is_left_out(small):
    data = load_cached("mnist-012", 0, None)
    (row,) = (row for row in TABLES["ablation"].rows if row.without and row.data == "mnist-012")
    net = build_network(row, data)
    assert isinstance(net.standardise, torch.nn.Identity)
    images = torch.rand(2, 1, 28, 28)
    assert torch.equal(net(images), net.classifier(net.features(images)))


def test_a_network_can_be_trained_without_validation_images(small):
    row = replace(TABLES["table2"].rows[2], includes_validation=True)
    record = run_experiment(row, "mnist-012", seed=0, epochs=1)
    assert (record["images"], record["validation"], record["includes validation"]) == (40, None, True)
    assert select_records(row, [record], epochs=1) == [record]
    assert select_records(replace(row, includes_validation=False), [record], epochs=1) == []


def test_it_is_trained_on_as_few_images_as_it_says(small, monkeypatch):
    monkeypatch.setattr(experiment_data, "MAX_VALIDATION_IMAGES", 7)
    spy = Mock(wraps=module.train_and_measure)
    monkeypatch.setattr(module, "train_and_measure", spy)
    rows = [replace(row, images=count) for row, count in zip(TABLES["few"].rows[2:4], (9, 50), strict=True)]
    records = [run_experiment(row, "mnist-rot", seed=0, epochs=1) for row in rows]
    data_sets = [call.args[2] for call in spy.call_args_list]
    assert [len(data.train.labels) for data in data_sets] == [9, 20]  # the second asks for more than there are
    assert torch.bincount(data_sets[0].train.labels).tolist() == [3, 3, 3]
    assert [len(data.validation.labels) for data in data_sets] == [7, 7]
    assert [len(data.test.labels) for data in data_sets] == [20, 20]
    assert [record["images"] for record in records] == [9, 20]
    assert [record["epochs given"] for record in records] == [1, 1]


def test_a_data_set_is_loaded_once_for_consecutive_experiments(small):
    for _ in range(2):
        load_cached("mnist-012", 0, None)
    assert small == [("mnist-012", 0)]


def test_trained_networks_are_saved_and_can_name_classes(small, tmp_path):
    rows = TABLES["table2"].rows
    network, compared = (next(row for row in rows if row.method == method) for method in ("TIGraNet", "STN"))
    for row in (network, compared):
        run_experiment(row, "mnist-012", seed=0, epochs=1, networks=tmp_path)
    (folder,) = tmp_path.iterdir()  # only TIGraNet is saved
    assert folder.name == network_folder(network, "mnist-012", 0)
    net = TIGraNet.from_pretrained(folder)
    assert net.class_names == load_cached("mnist-012", 0, None).class_names
    assert net.image_size == 28
