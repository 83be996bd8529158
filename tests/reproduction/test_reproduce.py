import io
import json
import sys
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch
from rich.console import Console

from tigranet.architecture import PRESETS
from tigranet.data import DataSet, LabelledImages
from tigranet.reproduction import reproduce as module
from tigranet.reproduction.reproduce import build, reproduce
from tigranet.reproduction.results_file import add_record, records
from tigranet.reproduction.tables import TABLES
from tigranet.training import Diverged


@pytest.fixture
def small(monkeypatch, mnist_012):
    """MNIST-012 with a tenth of its images."""
    parts = [
        LabelledImages(part.images[:20], part.labels[:20]) for part in (mnist_012.train, mnist_012.test, mnist_012.test)
    ]
    loaded = []

    def load(name, seed, folder):
        loaded.append((name, seed))
        return DataSet(name, mnist_012.class_names, *parts)

    module._data.cache_clear()
    monkeypatch.setattr(module, "load", load)
    yield loaded
    module._data.cache_clear()


METHODS = ("ConvNet", "TIGraNet")
PAPER_SMALL = PRESETS["paper-small"]
TOO_FAST = {"learning_rate": 1e37, "schedule": "cosine", "batch_size": 4}


def test_a_table_is_measured_row_by_row_and_set_beside_the_papers(small, tmp_path):
    text, _ = reproduce("table2", tmp_path, quick=True, epochs=1, methods=METHODS)
    lines = [json.loads(line) for line in (tmp_path / "table2-quick.jsonl").read_text().splitlines()]
    assert [line["row"] for line in lines] == [
        "ConvNet (trained on turned images)", "ConvNet", "TIGraNet", "TIGraNet (no jitter)", "ConvNet (global average)",
    ]  # fmt: skip
    assert [line["recipe"]["turned"] for line in lines] == [True, False, False, False, False]
    assert lines[3]["recipe"]["jitter"] == 0
    assert {"versions", "machine", "seconds", "moved", "nearest", "test", "drop", "command"} <= set(lines[0])
    assert lines[0]["moved"]["draws"] == 10
    assert list(lines[0]["robustness"]) == [
        "turned by 90 degrees", "rotated", "rotated, pixels not interpolated", "shifted by up to 3 pixels",
    ]  # fmt: skip
    assert (tmp_path / "table2-quick.md").read_text() == text
    assert len((tmp_path / "table2-quick.csv").read_text().splitlines()) == 6
    (ours,) = (line for line in text.splitlines() if "| TIGraNet |" in line)
    assert f"{lines[2]['moved']['mean']:.1f} | 94 ± 0.42" in ours


def test_what_was_measured_is_not_measured_again(small, tmp_path, monkeypatch):
    first, _ = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS)
    whole = (tmp_path / "table2.jsonl").read_text()
    (tmp_path / "table2.jsonl").write_text("".join(whole.splitlines(keepends=True)[:2]))  # broken off
    again, _ = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS)
    assert again.count("|") == first.count("|")
    assert len((tmp_path / "table2.jsonl").read_text().splitlines()) == 5
    monkeypatch.setattr(module, "_measure", lambda *_: pytest.fail("measured again"))
    reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS)


def test_a_quick_run_takes_the_small_sets_by_their_own_names(small, tmp_path):
    text, _ = reproduce("table3", tmp_path, quick=True, epochs=1, methods=["ConvNet"])
    assert {name for name, _ in small} == {"mnist-rot-mini", "mnist-trans-mini"}
    assert "| mnist-rot-mini | ConvNet |" in text


def test_a_network_that_fits_itself_is_measured_like_the_others(small, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["tigranet.evaluation.accuracy"], "MIN_MOVED_IMAGES", 20)  # one draw
    text, _ = reproduce("table4", tmp_path, seeds=[0], methods=["DeepScat"])
    line, objects = (json.loads(line) for line in (tmp_path / "table4.jsonl").read_text().splitlines())
    assert (line["data"], objects["data"]) == ("eth80", "eth80-objects")
    assert f"| eth80 | DeepScat | {line['test']:.1f} | 87.3 |" in text
    assert line["train"] > 90


def test_several_share_the_work_and_the_table_shows_all_of_it(small, tmp_path):
    for seed, method in ((0, "ConvNet"), (1, "ConvNet"), (0, "TIGraNet (no jitter)")):
        reproduce("table2", tmp_path, seeds=[seed], epochs=1, methods=[method], command=f"of {seed}")
    text, _ = reproduce("table2", tmp_path, epochs=1, measure=False)
    lines = {line.split("|")[2].strip(): line.split("|")[-2].strip() for line in text.splitlines() if "mnist" in line}
    assert lines["ConvNet"] == "2"
    assert lines["TIGraNet (no jitter)"] == "1"
    assert lines["STN"] == "0"
    commands = [json.loads(line)["command"] for line in (tmp_path / "table2.jsonl").read_text().splitlines()]
    assert set(commands) == {"of 0", "of 1"}


def test_what_another_process_has_measured_meanwhile_is_left_out(small, tmp_path, monkeypatch):
    whole = module._measure
    others = iter([True])

    def measure(row, *more):
        measured = whole(row, *more)
        if next(others, False):  # while the first row is measured, somebody adds the second
            second = [each for each in TABLES["table2"].rows if each.method == "TIGraNet"][1]
            add_record(tmp_path / "table2.jsonl", whole(second, *more))
        return measured

    monkeypatch.setattr(module, "_measure", measure)
    reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["TIGraNet"])
    rows = [record["row"] for record in records(tmp_path / "table2.jsonl")]
    assert sorted(rows) == ["TIGraNet", "TIGraNet (no jitter)"]


def test_a_row_whose_recipe_was_changed_is_measured_again(small, tmp_path, monkeypatch):
    reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["STN"])
    rows = tuple(replace(row, recipe=row.recipe | {"learning_rate": 0.1}) for row in TABLES["table2"].rows)
    monkeypatch.setitem(TABLES, "table2", replace(TABLES["table2"], rows=rows))
    text, _ = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["STN"])
    rates = [record["recipe"]["learning_rate"] for record in records(tmp_path / "table2.jsonl")]
    assert rates == [0.01, 0.01, 0.1, 0.1]
    assert text.count(" | 1 |") == 2  # and it is the new one that is printed


def test_a_row_whose_preset_was_changed_is_measured_again(small, tmp_path, monkeypatch):
    reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["TIGraNet (no jitter)"])
    monkeypatch.setitem(PRESETS, "paper-small", "SC[2,2]-S[1]-FC[4]")
    text, _ = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["TIGraNet (no jitter)"])
    found = records(tmp_path / "table2.jsonl")
    assert [record["layers"] for record in found] == [PAPER_SMALL, "SC[2,2]-S[1]-FC[4]"]
    assert f"| {found[1]['parameters']} | 1 |" in text


def test_a_row_is_trained_on_as_few_images_as_it_says(small, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", 7)
    spy = Mock(wraps=module.train_and_measure)
    monkeypatch.setattr(module, "train_and_measure", spy)
    rows = tuple(replace(row, images=count) for row, count in zip(TABLES["few"].rows[2:4], (9, 50), strict=True))
    monkeypatch.setitem(TABLES, "few", replace(TABLES["few"], rows=rows))
    text, _ = reproduce("few", tmp_path, seeds=[0], epochs=1)
    seen = [call.args[2] for call in spy.call_args_list]
    assert [len(data.train.labels) for data in seen] == [9, 20]  # or all that there are
    assert torch.bincount(seen[0].train.labels).tolist() == [3, 3, 3]
    assert [len(data.validation.labels) for data in seen] == [7, 7]
    assert [len(data.test.labels) for data in seen] == [20, 20]
    lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("| mnist-rot")]
    assert [line[2:4] for line in lines] == [["9", "TIGraNet (paper)"], ["20", "ConvNet"]]
    assert [record["images"] for record in records(tmp_path / "few.jsonl")] == [9, 20]


@pytest.mark.filterwarnings("ignore:Encountered `nan`")
def test_a_row_that_diverges_is_named_and_the_others_go_on(small, tmp_path, monkeypatch):
    rows = tuple(replace(row, recipe=TOO_FAST) if row.name == "ConvNet" else row for row in TABLES["table2"].rows)
    monkeypatch.setitem(TABLES, "table2", replace(TABLES["table2"], rows=rows))
    console = Console(file=io.StringIO(), width=200)
    text, diverged = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS, console=console)
    assert diverged == ["table2, mnist-012, seed 0: ConvNet"]
    assert "mnist-012, seed 0: ConvNet: the loss became" in console.file.getvalue()
    assert "ConvNet" not in {record["row"] for record in records(tmp_path / "table2.jsonl")}
    assert len(records(tmp_path / "table2.jsonl")) == 4
    assert (tmp_path / "table2.md").read_text() == text


@pytest.mark.parametrize(
    ("called", "count"),
    [("GroupCNN", 10), ("GroupCNN (C4)", 5), ("ConvNet (trained on turned images)", 5), ("STN, 100 images", 1)],
)
def test_rows_are_called_by_method_or_kind_or_whole_name(small, tmp_path, monkeypatch, called, count):
    monkeypatch.setattr(module, "_measure", Mock(side_effect=Diverged("at once")))
    _, diverged = reproduce("few", tmp_path, seeds=[0], methods=[called])
    assert len(diverged) == count
    assert all(called in run for run in diverged)


def test_the_figures_of_the_paper_are_those_it_prints():
    printed = {
        "table2": ["99 94 78 ± 2.1", "100 97 93 ± 0.97", "100 100 55 ± 5", "100 98 50 ± 5", "98 97 94 ± 0.42"],
        "table3": ["44.3", "44.5", "83.8", "43.5", "67.1", "79.6"],
        "table4": ["45.1", "80.1", "87.3", "94.0", "95.1"],
    }
    for name, table in TABLES.items():
        assert [" ".join(row.reported) for row in table.rows if row.reported] == printed.get(name, [])
        assert len({(row.name, row.data) for row in table.rows}) == len(table.rows)


def test_networks_are_built_for_the_images(small):
    data = module._data("mnist-012", 0, None)
    for table in TABLES.values():
        for row in {row.kind + row.layers: row for row in table.rows}.values():  # once, on however many images
            net = build(row, data)
            if row.method != "DeepScat":  # it has no answer before it is fitted
                assert net.eval()(torch.rand(2, 1, 28, 28)).shape == (2, 3)


def test_an_ablation_changes_one_thing_a_row():
    rows = TABLES["ablation"].rows
    for data in ("mnist-rot", "mnist-012"):
        usual, *others, papers = (row for row in rows if row.data == data)
        assert (usual.options, usual.recipe, usual.without) == ({}, {}, ())
        for row in others:
            changed = [row.architecture != usual.architecture, *row.options, *row.recipe, *row.without]
            assert len(list(filter(None, changed))) == 1, row
        assert papers.options == {"init": "paper", "ties": "strict"}


def test_a_part_is_left_out(small):
    data = module._data("mnist-012", 0, None)
    (row,) = (row for row in TABLES["ablation"].rows if row.without and row.data == "mnist-012")
    net = build(row, data)
    assert isinstance(net.standardise, torch.nn.Identity)
    images = torch.rand(2, 1, 28, 28)
    assert torch.equal(net(images), net.classifier(net.features(images)))


@pytest.mark.parametrize(
    ("name", "methods", "message"),
    [
        ("table1", [], "there is no 'table1': there are table2, table3, table4, ablation, oriented,"),
        ("table2", ["ResNet"], "no row is called ResNet: there are ConvNet, "),
    ],
)
def test_another_table_or_method_is_refused(tmp_path, name, methods, message):
    with pytest.raises(ValueError, match=message):
        reproduce(name, tmp_path, methods=methods)


def test_only_the_data_that_are_asked_for(small, tmp_path):
    with pytest.raises(ValueError, match="no row is about cifar: there are eth80, "):
        reproduce("oriented", tmp_path, data=["cifar"])
    with pytest.raises(ValueError, match=r"table2 has no row of STN and eth80: it has ConvNet, .* on mnist-012"):
        reproduce("table2", tmp_path / "none", data=["eth80"], methods=["STN"])
    assert not (tmp_path / "none").exists()
    reproduce("table3", tmp_path, data=["mnist-trans"], methods=["ConvNet"], quick=True, epochs=1)
    found = records(tmp_path / "table3-quick.jsonl")
    assert {record["data"] for record in found} == {"mnist-trans-mini"}
