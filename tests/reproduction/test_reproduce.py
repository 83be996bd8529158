import io
import json
import re
import sys
from dataclasses import replace
from unittest.mock import Mock

import pytest
from rich.console import Console

from tigranet.architecture import PRESETS
from tigranet.reproduction import reproduce as module
from tigranet.reproduction.experiment import Experiment
from tigranet.reproduction.reproduce import list_rows, reproduce
from tigranet.reproduction.results_file import append_record, read_records
from tigranet.reproduction.tables import TABLES
from tigranet.training import Diverged

METHODS = ("ConvNet", "TIGraNet")
PAPER_SMALL = PRESETS["paper-small"]
DIVERGING = {"learning_rate": 1e37, "schedule": "cosine", "batch_size": 4}


@pytest.mark.usefixtures("whole_results")
def test_a_table_is_measured_row_by_row_beside_the_papers(small, tmp_path):
    text = reproduce("table2", tmp_path, quick=True, epochs=1, methods=METHODS).markdown
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


def test_existing_results_are_not_measured_again(small, tmp_path, monkeypatch):
    first = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS).markdown
    complete = (tmp_path / "table2.jsonl").read_text()
    (tmp_path / "table2.jsonl").write_text("".join(complete.splitlines(keepends=True)[:2]))  # as if interrupted
    again = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS).markdown
    assert again.count("|") == first.count("|")
    assert len((tmp_path / "table2.jsonl").read_text().splitlines()) == 5
    monkeypatch.setattr(module, "run_experiment", lambda *_: pytest.fail("measured again"))
    reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS)


def test_a_quick_run_uses_the_small_data_sets_under_their_own_names(small, tmp_path):
    text = reproduce("table3", tmp_path, quick=True, epochs=1, methods=["ConvNet"]).markdown
    assert {name for name, _ in small} == {"mnist-rot-mini", "mnist-trans-mini"}
    assert "| mnist-rot-mini | ConvNet |" in text


def test_a_network_that_fits_itself_is_measured_like_the_others(small, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["tigranet.evaluation.accuracy"], "MIN_MOVED_IMAGES", 20)  # one draw
    text = reproduce("table4", tmp_path, seeds=[0], methods=["DeepScat"]).markdown
    by_image, by_object = (json.loads(line) for line in (tmp_path / "table4.jsonl").read_text().splitlines())
    assert (by_image["data"], by_object["data"]) == ("eth80", "eth80-objects")
    assert f"| eth80 | DeepScat | {by_image['test']:.1f} | 87.3 |" in text
    assert by_image["train"] > 90


def test_several_calls_share_the_work_and_the_table_shows_all_results(small, tmp_path):
    for seed, method in ((0, "ConvNet"), (1, "ConvNet"), (0, "TIGraNet (no jitter)")):
        reproduce("table2", tmp_path, seeds=[seed], epochs=1, methods=[method], command=f"seed {seed}")
    text = reproduce("table2", tmp_path, epochs=1, measure=False).markdown
    lines = {line.split("|")[2].strip(): line.split("|")[-2].strip() for line in text.splitlines() if "mnist" in line}
    assert lines["ConvNet"] == "2"
    assert lines["TIGraNet (no jitter)"] == "1"
    assert lines["STN"] == "0"
    commands = [json.loads(line)["command"] for line in (tmp_path / "table2.jsonl").read_text().splitlines()]
    assert set(commands) == {"seed 0", "seed 1"}


def test_a_result_that_another_process_adds_meanwhile_is_not_measured_again(small, tmp_path, monkeypatch):
    run_experiment = module.run_experiment
    others = iter([True])

    def run(row, *arguments):
        record = run_experiment(row, *arguments)
        if next(others, False):  # while the first row is measured, another process adds the second
            second = [each for each in TABLES["table2"].rows if each.method == "TIGraNet"][1]
            append_record(tmp_path / "table2.jsonl", run_experiment(second, *arguments))
        return record

    monkeypatch.setattr(module, "run_experiment", run)
    reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["TIGraNet"])
    rows = [record["row"] for record in read_records(tmp_path / "table2.jsonl")]
    assert sorted(rows) == ["TIGraNet", "TIGraNet (no jitter)"]


def test_a_row_whose_recipe_has_changed_is_measured_again(small, tmp_path, monkeypatch):
    reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["STN"])
    rows = tuple(replace(row, recipe=row.recipe | {"learning_rate": 0.1}) for row in TABLES["table2"].rows)
    monkeypatch.setitem(TABLES, "table2", replace(TABLES["table2"], rows=rows))
    text = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["STN"]).markdown
    rates = [record["recipe"]["learning_rate"] for record in read_records(tmp_path / "table2.jsonl")]
    assert rates == [0.01, 0.01, 0.1, 0.1]
    assert text.count(" | 1 |") == 2  # only the new results are shown


def test_a_row_whose_preset_has_changed_is_measured_again(small, tmp_path, monkeypatch):
    reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["TIGraNet (no jitter)"])
    monkeypatch.setitem(PRESETS, "paper-small", "SC[2,2]-S[1]-FC[4]")
    text = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=["TIGraNet (no jitter)"]).markdown
    records = read_records(tmp_path / "table2.jsonl")
    assert [record["layers"] for record in records] == [PAPER_SMALL, "SC[2,2]-S[1]-FC[4]"]
    assert f"| {records[1]['parameters']} | 1 |" in text


def test_the_table_shows_how_many_images_a_row_was_trained_on(small, tmp_path, monkeypatch):
    rows = tuple(replace(row, images=count) for row, count in zip(TABLES["few"].rows[2:4], (9, 50), strict=True))
    monkeypatch.setitem(TABLES, "few", replace(TABLES["few"], rows=rows))
    result = reproduce("few", tmp_path, seeds=[0], epochs=1)
    lines = [
        [cell.strip() for cell in line.split("|")]
        for line in result.markdown.splitlines()
        if line.startswith("| mnist-rot")
    ]
    assert [line[2:4] for line in lines] == [["9", "TIGraNet (paper)"], ["20", "ConvNet"]]
    assert [record["images"] for record in read_records(tmp_path / "few.jsonl")] == [9, 20]
    assert {path.name for path in result.pictures} == {"few.png", "few.svg"}


def test_without_matplotlib_the_table_is_written_without_a_picture(small, tmp_path, monkeypatch):
    (tmp_path / "few.jsonl").touch()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    console = Console(file=io.StringIO(), width=200)
    assert reproduce("few", tmp_path, measure=False, console=console).pictures == ()
    assert "pip install 'tigranet[figures]'" in console.file.getvalue()
    assert (tmp_path / "few.md").exists()


@pytest.mark.filterwarnings("ignore:Encountered `nan`")
def test_a_row_that_diverges_is_named_and_the_others_go_on(small, tmp_path, monkeypatch):
    rows = tuple(replace(row, recipe=DIVERGING) if row.name == "ConvNet" else row for row in TABLES["table2"].rows)
    monkeypatch.setitem(TABLES, "table2", replace(TABLES["table2"], rows=rows))
    console = Console(file=io.StringIO(), width=200)
    result = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS, console=console)
    assert result.diverged == ("table2, mnist-012, seed 0: ConvNet",)
    assert re.search(r"mnist-012, seed 0: ConvNet: .*loss", console.file.getvalue())
    assert "ConvNet" not in {record["row"] for record in read_records(tmp_path / "table2.jsonl")}
    assert len(read_records(tmp_path / "table2.jsonl")) == 4
    assert (tmp_path / "table2.md").read_text() == result.markdown


@pytest.mark.parametrize(
    ("name", "count"),
    [("GroupCNN", 10), ("GroupCNN (C4)", 5), ("ConvNet (trained on turned images)", 5), ("STN, 100 images", 1)],
)
def test_rows_are_selected_by_method_or_kind_or_full_name(small, tmp_path, monkeypatch, name, count):
    monkeypatch.setattr(module, "run_experiment", Mock(side_effect=Diverged("at once")))
    diverged = reproduce("few", tmp_path, seeds=[0], methods=[name]).diverged
    assert len(diverged) == count
    assert all(name in run for run in diverged)


@pytest.mark.parametrize(
    ("name", "methods", "words"),
    [
        ("table1", [], ["'table1'", "table2, table3, table4, ablation, oriented,"]),
        ("table2", ["ResNet"], ["ResNet", "ConvNet, "]),
    ],
)
def test_another_table_or_method_is_refused(tmp_path, name, methods, words):
    with pytest.raises(ValueError, match=".*".join(words)):
        reproduce(name, tmp_path, methods=methods)


def test_only_the_selected_data_are_used(small, tmp_path):
    with pytest.raises(ValueError, match=r"cifar.*eth80, "):
        reproduce("oriented", tmp_path, data=["cifar"])
    with pytest.raises(ValueError, match=r"table2 .*STN and eth80.*ConvNet, .* on mnist-012"):
        reproduce("table2", tmp_path / "none", data=["eth80"], methods=["STN"])
    assert not (tmp_path / "none").exists()
    reproduce("table3", tmp_path, data=["mnist-trans"], methods=["ConvNet"], quick=True, epochs=1)
    records = read_records(tmp_path / "table3-quick.jsonl")
    assert {record["data"] for record in records} == {"mnist-trans-mini"}


def test_a_folder_that_cannot_be_written_is_found_before_the_work(small, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file"):
        reproduce("table2", tmp_path / "file", quick=True)
    assert small == []


def test_rows_are_selected_by_number(small, tmp_path):
    reproduce("table2", tmp_path, seeds=[0], epochs=1, rows=[3, 6])
    assert [record["row"] for record in read_records(tmp_path / "table2.jsonl")] == ["ConvNet", "TIGraNet (no jitter)"]
    text = list_rows("table2", tmp_path, epochs=1)
    assert "| 3 | mnist-012 | ConvNet | 0 |" in text
    assert "| 4 | mnist-012 | STN | none |" in text
    with pytest.raises(ValueError, match=r"table2 .*1 to 8, got 0, 9"):
        reproduce("table2", tmp_path, rows=[9, 0, 1])
    with pytest.raises(ValueError, match=r"table2 .*STN and row 3"):
        reproduce("table2", tmp_path, rows=[3], methods=["STN"])
    with pytest.raises(ValueError, match="'table1'"):
        list_rows("table1", tmp_path)


def test_the_columns_of_the_table_are_measured(small, tmp_path, monkeypatch):
    row = TABLES["table2"].rows[2]
    columns = ("test", "protocol", "at_45", "at_90", "balanced", "log_loss", "minutes")
    monkeypatch.setitem(TABLES, "photographs", replace(TABLES["photographs"], rows=(row,), extra_columns=columns))
    text = reproduce("photographs", tmp_path, seeds=[0], epochs=1).markdown
    (record,) = read_records(tmp_path / "photographs.jsonl")
    assert len(record["rotations"]["by_angle"]) == 37
    assert f"| {record['test']:.1f} | {record['rotations']['mean']:.1f} |" in text
    assert f"| {record['scores']['log_loss']:.3f} |" in text
    assert (record["precision"], record["windowed"], record["measured on"]) == ("tf32", False, "test")


def test_a_row_that_needs_another_package_is_named_and_the_others_go_on(small, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "GMR_Conv", None)
    monkeypatch.delitem(sys.modules, "GMR_Conv.gmr_resnet", raising=False)
    rows = (Experiment("GMRResNet", "cifar10", "gmr-resnet18"), TABLES["table2"].rows[2])
    monkeypatch.setitem(TABLES, "photographs", replace(TABLES["photographs"], rows=rows, extra_columns=("test",)))
    result = reproduce("photographs", tmp_path, seeds=[0], epochs=1)
    (run,) = result.skipped
    assert re.fullmatch(r"photographs, cifar10, seed 0: GMRResNet: .*pip install.*", run)
    assert [record["row"] for record in read_records(result.records)] == ["ConvNet"]
