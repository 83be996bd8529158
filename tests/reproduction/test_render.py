import csv
import io
from dataclasses import replace

from tigranet.reproduction.experiment import Experiment
from tigranet.reproduction.render import as_csv, as_markdown, as_row_list, select_records
from tigranet.reproduction.tables import TABLES

EXPERIMENT = Experiment("TIGraNet", "eth80", "paper", ("95.1",))
TABLE = replace(TABLES["table4"], rows=(EXPERIMENT, Experiment("HarmNet", "eth80", "paper", ("94.0",))))


def run(seed, test, **more):
    recipe = {"epochs": 60, "batch_size": 50, "learning_rate": 0.003, "schedule": "one-cycle", "jitter": 0.5}
    accuracy = {"mean": test - 2.0, "std": 0.0, "draws": 1}
    return {
        "row": "TIGraNet", "data": "eth80", "architecture": "paper", "parameters": 7, "seed": seed, "train": 100.0,
        "validation": 96.0, "test": test, "how": "upright", "moved": accuracy, "nearest": accuracy,
        "epochs given": None, "recipe": recipe | {"turned": False}, "seconds": 1.5,
        "machine": {"gpu": None, "cpu": "a"}, "versions": {"torch": "2"},
    } | more  # fmt: skip


def test_the_mean_and_deviation_are_over_seeds():
    robustness = {"rotated": {"mean": 80.0}, "shifted by up to 6 pixels": {"mean": 70.0}}
    text = as_markdown(TABLE, [run(0, 90.0), run(2, 92.0, robustness=robustness)])
    assert "| data | method | upright test | paper | validation | rotated test | parameters | seeds |" in text
    assert "| eth80 | TIGraNet | 91.0 ± 1.4 | 95.1 | 96.0 ± 0.0 | 80.0 | 7 | 2 |" in text
    assert "| eth80 | HarmNet | not measured | 94.0 | not measured | not measured | - | 0 |" in text


def test_every_line_of_the_table_has_the_same_number_of_cells():
    for table in TABLES.values():
        lines = [line for line in as_markdown(table, []).splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) == 1
        assert len(lines) == 2 + len(table.rows)


def test_the_drop_is_upright_minus_moved():
    table = replace(TABLE, columns=("moved",), extra_columns=("drop",), rows=(EXPERIMENT,))
    assert "| 88.0 | 95.1 | 2.0 | 7 | 1 |" in as_markdown(table, [run(0, 90.0, how="rotated")])
    assert "| - | 95.1 | - | 7 | 1 |" in as_markdown(table, [run(0, 90.0)])  # these test images are not moved


def test_runs_with_other_epochs_architectures_or_recipes_do_not_count():
    others = [run(0, 90.0, **{"epochs given": 1}), run(0, 90.0, architecture="paper-small"), run(0, 90.0, data="x")]
    assert select_records(EXPERIMENT, [*others, run(1, 91.0)]) == [run(1, 91.0)]
    assert select_records(EXPERIMENT, others, epochs=1) == others[:1]
    longer = replace(EXPERIMENT, recipe={"epochs": 80})
    assert select_records(longer, [run(1, 91.0)]) == []
    assert select_records(longer, others, epochs=1) == others[:1]  # the given number of epochs takes precedence


def test_runs_of_a_preset_that_has_changed_do_not_count():
    assert select_records(EXPERIMENT, [run(0, 90.0, layers=EXPERIMENT.layers)]) == [
        run(0, 90.0, layers=EXPERIMENT.layers)
    ]
    assert select_records(EXPERIMENT, [run(0, 90.0, layers="SC[2,2]-S[1]")]) == []


def test_the_number_of_training_images_is_shown_if_rows_differ_in_it():
    row = replace(EXPERIMENT, images=2_000)
    text = as_markdown(replace(TABLE, rows=(row, replace(row, images=50))), [run(0, 90.0, row=row.name, images=1_500)])
    assert "| data | training images | method | upright test |" in text
    assert "| eth80 | 1,500 | TIGraNet | 90.0 | 95.1 |" in text  # the number that there actually were
    assert "| eth80 | 50 | TIGraNet | not measured | 95.1 |" in text
    assert "training images" not in as_markdown(TABLE, [])


def test_the_csv_has_one_row_per_run_with_its_recipe_and_command():
    robustness = {"rotated": {"mean": 80.0}, "shifted by up to 6 pixels": {"mean": 70.0}}
    runs = [run(0, 90.0), run(2, 92.0, robustness=robustness, command="tigranet reproduce table4")]
    rows = list(csv.DictReader(io.StringIO(as_csv("table4", TABLE, runs))))
    assert [row["upright"] for row in rows] == ["90.0", "92.0"]
    assert [row["shifted"] for row in rows] == ["", "70.0"]
    assert rows[1]["command"] == "tigranet reproduce table4"
    assert {
        "seed",
        "seconds",
        "gpu",
        "cpu",
        "torch",
        "epochs",
        "learning_rate",
        "warp",
        "tone",
        "smoothing",
        "drop",
    } <= set(rows[0])
    assert as_csv("table4", TABLE, []) == ""


def measured(seed, mean, **more):
    rotations = {"mean": mean, "at_45": mean - 2, "at_90": mean + 2}
    return run(seed, 90.0, rotations=rotations, scores={"balanced_accuracy": 60.0, "log_loss": 1.23456}, **more)


def test_columns_that_only_some_tables_have():
    columns = ("protocol", "at_45", "at_90", "balanced", "log_loss", "error", "minutes")
    table = replace(TABLE, columns=(), extra_columns=columns, rows=(replace(EXPERIMENT, reported=()),))
    runs = [measured(0, 80.0, seconds=60.0), measured(1, 82.0, seconds=120.0)]
    text = as_markdown(table, runs)
    names = "mean of 37 angles | 45 degrees | 90 degrees | balanced accuracy | log loss | test error, % | minutes"
    assert f"| {names} |" in text
    assert ("| 81.0 ± 1.4 | 79.0 ± 1.4 | 83.0 ± 1.4 | 60.0 ± 0.0 | 1.235 ± 0.000 | 10.00 ± 0.00 | 1.5 ± 0.7 |") in text
    assert "0, 10, ..., 360 degrees" in text
    (row, _) = csv.DictReader(io.StringIO(as_csv("photographs", table, runs)))
    assert (row["mean of 37 angles"], row["log loss"]) == ("80.0", "1.2346")
    assert "not measured" in as_markdown(table, [run(0, 90.0)])  # an old record lacks these
    assert "mean of 37 angles" not in as_csv("table4", TABLE, runs)


def test_results_on_validation_images_are_called_so():
    experiment = replace(EXPERIMENT, reported=(), on_validation=True)
    table = replace(TABLE, columns=(), extra_columns=("test", "rotated"), rows=(experiment,))
    record = run(0, 90.0) | {"measured on": "validation"}
    text = as_markdown(table, [record, run(1, 91.0) | {"measured on": "test"}])
    assert "| upright validation | rotated validation |" in text
    assert "test" not in text.splitlines()[2]
    assert select_records(experiment, [record, run(1, 91.0) | {"measured on": "test"}]) == [record]


def test_runs_with_other_images_precision_or_options_do_not_count():
    same = run(0, 90.0, options={}, windowed=False, precision="tf32")
    others = [same | {"windowed": True}, same | {"precision": "bf16"}, same | {"options": {"boundary": "torus"}}]
    assert select_records(EXPERIMENT, [*others, same]) == [same]


def test_a_run_that_two_processes_measured_counts_once():
    runs = [run(0, 90.0), run(1, 91.0), run(0, 99.0)]
    assert select_records(EXPERIMENT, runs) == runs[:2]
    assert "| 90.5 ± 0.7 |" in as_markdown(TABLE, runs)


def test_rows_are_listed_with_their_numbers_and_seeds():
    lines = as_row_list(TABLE, [run(2, 92.0), run(0, 90.0)]).splitlines()
    assert lines[-2:] == ["| 1 | eth80 | TIGraNet | 0, 2 |", "| 2 | eth80 | HarmNet | none |"]
