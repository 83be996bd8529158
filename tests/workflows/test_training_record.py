import json
import time
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigranet.training import Recipe
from tigranet.training.recipe import ADDED_FIELDS
from tigranet.workflows.saved_run import SavedRun
from tigranet.workflows.training_record import MAX_RECORD_BYTES, read_training_record

RECORD = {
    "recipe": asdict(Recipe(epochs=3, keep="best", patience=2)),
    "data": "photos/",
    "seed": 2**63 - 1,
    "group": None,
    "train_images": None,
    "seen": "0123456789abcdef fedcba9876543210",
    "tested": "0123456789abcdef",
    "accuracy": float("nan"),
    "other": [1, {"a": None}],
}


def write(folder, content):
    (folder / "training.json").write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder / "training.json"


def test_a_complete_record_is_read_with_values_that_are_not_known(tmp_path):
    record = read_training_record(write(tmp_path, RECORD))
    assert {**record, "accuracy": 0} == {**RECORD, "accuracy": 0}
    assert read_training_record(write(tmp_path, {})) == {}
    assert SavedRun.read(tmp_path) == SavedRun()


def test_a_record_of_an_older_version_has_the_defaults_of_the_fields_that_it_lacks(tmp_path):
    recipe = {name: value for name, value in RECORD["recipe"].items() if name not in ADDED_FIELDS}
    read = read_training_record(write(tmp_path, RECORD | {"recipe": recipe}))["recipe"]
    assert read == recipe
    assert asdict(Recipe(**read)) == RECORD["recipe"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["not JSON"]),
        (b'{"seed": 1,\n"group": }', ["not JSON", "line 2"]),
        (b"\xff\xfe", ["not JSON"]),
        (b'{"a":' * 100_000, ["nested"]),
        (b'{"a": [' + b"[]," * 2_000_000 + b"1]}", ["values"]),
        (b'{"seed": 1, "seed": 2}', ["'seed'"]),
        ([RECORD], ["JSON object", "list"]),
        ("text", ["JSON object", "str"]),
        ({"seed": "abc"}, ["seed", "'abc'"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"seed": 1.0}, ["seed", "1.0"]),
        ({"seed": True}, ["seed", "True"]),
        ({"seed": None}, ["seed", "None"]),
        ({"seed": [1]}, ["seed", "[1]"]),
        ({"seed": 2**63}, ["seed", "2**63"]),
        ({"seed": float("nan")}, ["seed", "nan"]),
        (b'{"seed": 1e400}', ["seed", "inf"]),
        ({"group": 5}, ["group", "5"]),
        ({"train_images": 0.5}, ["train_images", "0.5"]),
        ({"train_images": -3}, ["train_images", "-3"]),
        ({"train_images": "9"}, ["train_images", "'9'"]),
        ({"seen": 5}, ["seen", "5"]),
        ({"seen": ["0123456789abcdef"]}, ["seen"]),
        ({"seen": "not a hash"}, ["seen", "not a hash"]),
        ({"seen": "a " * 1_000_000}, ["seen", "a a a"]),
        ({"tested": {}}, ["tested", "{}"]),
        ({"data": 7}, ["data", "7"]),
        ({"recipe": [1]}, ["recipe", "[1]"]),
        ({"recipe": None}, ["recipe", "None"]),
        ({"recipe": {"epoch": 3}}, ["'epoch'", "epochs"]),
        ({"recipe": {"x\n" * 10**6: 3}}, ["unknown field"]),
        ({"recipe": {"epochs": "many"}}, ["epochs", "'many'"]),
        ({"recipe": {"epochs": 0}}, ["epochs", "0"]),
        ({"recipe": {"epochs": 10**400}}, ["epochs"]),
        ({"recipe": {"epochs": True}}, ["epochs", "True"]),
        ({"recipe": {"balanced": 1}}, ["balanced", "1"]),
        ({"recipe": {"jitter": float("nan")}}, ["jitter", "nan"]),
        ({"recipe": {"jitter": 7}}, ["jitter", "7"]),
        ({"recipe": {"learning_rate": "0.1"}}, ["learning_rate", "'0.1'"]),
        ({"recipe": {"schedule": "none"}}, ["schedule", "'none'"]),
        ({"recipe": {"keep": ["best"]}}, ["keep", "['best']"]),
        ({"recipe": {"patience": 1.5}}, ["patience", "1.5"]),
        ({"recipe": {"seed": -1}}, ["seed", "-1"]),
    ],
    ids=range(43),
)
def test_a_hostile_record_is_refused_in_one_line_that_names_the_file(tmp_path, content, words):
    write(tmp_path, content)
    before = time.process_time()
    with pytest.raises(ValueError, match=r"training\.json'") as error:
        SavedRun.read(tmp_path)
    assert time.process_time() - before < 2
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


def test_a_large_file_is_refused_before_it_is_read(tmp_path):
    with write(tmp_path, b"{}").open("ab") as file:
        file.truncate(MAX_RECORD_BYTES * 1000)
    before = time.process_time()
    with pytest.raises(ValueError, match=r"training\.json' is too large"):
        read_training_record(tmp_path / "training.json")
    assert time.process_time() - before < 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(RECORD["recipe"])), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(RECORD)), json_values))
def test_any_values_give_a_run_or_an_error_of_one_line(tmp_path_factory, record):
    folder = tmp_path_factory.mktemp("record")
    write(folder, record)
    message = "training.json"
    try:
        run = SavedRun.read(folder)
    except ValueError as error:
        message = str(error)
    else:
        assert isinstance(run.seed, int)
        Recipe(**({"epochs": 1} | dict(run.recipe)))
    assert "training.json" in message
    assert "\n" not in message
