import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigranet.json_file import MAX_JSON_VALUES, parse_json_object, read_json_object, read_limited

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), values, max_size=5))
def test_every_object_that_python_writes_is_read(value):
    assert parse_json_object(json.dumps(value).encode(), "x.json", "a record") == value


@given(st.binary(max_size=60) | st.text('{}[]",:0123456789.eE+-NaInfity \n\\u').map(str.encode))
def test_any_bytes_give_an_object_or_an_error_of_one_line(data):
    try:
        result, message = parse_json_object(data, "x.json", "a record"), "'x.json'"
    except ValueError as error:
        result, message = {}, str(error)
    assert isinstance(result, dict)
    assert "'x.json'" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,\n "b": }', ["line 2"]),
        ("", ["not JSON"]),
        ("[1]", ["not a record", "list"]),
        ("7", ["not a record", "int"]),
        ('{"a": NaN}', ["NaN"]),
        ('{"a": [-Infinity]}', ["-Infinity"]),
        ('{"a": 1e400}', ["1e400"]),
        ('{"a": 1, "b": 2, "a": 3}', ["'a'", "more than once"]),
        ('{"x": {"a\\n": 1, "a\\n": 1}}', ["'a\\n'", "more than once"]),
        ('{"a": ' + "9" * 5000 + "}", ["not JSON", "4300"]),
        ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", ["nested too deeply"]),
        ("{" + '"a":{' * 200_000, ["nested too deeply"]),
        ('{"a": [' + "0," * MAX_JSON_VALUES + "0]}", [f"{MAX_JSON_VALUES:,} values"]),
        ('{"a": "\\ud83d"', ["not JSON"]),
        ("\ufeff{", ["not JSON"]),
    ],
    ids=range(15),
)
def test_errors_name_the_file_and_the_reason(text, words):
    before = time.process_time()
    with pytest.raises(ValueError, match=r"'some/x\.json'") as error:
        parse_json_object(text.encode(), "some/x.json", "a record")
    assert time.process_time() - before < 1
    assert all(word in str(error.value) for word in words), str(error.value)
    assert len(str(error.value)) < 500


def test_nan_is_accepted_where_numbers_were_measured(tmp_path):
    (tmp_path / "x.json").write_text('{"a": NaN, "b": 1e400}')
    record = read_json_object(tmp_path / "x.json", 100, "a record", allow_nan=True)
    assert record["a"] != record["a"]
    assert record["b"] == float("inf")


def test_text_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "x.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ValueError, match=r"x\.json' is not JSON.*0xff"):
        read_json_object(tmp_path / "x.json", 100, "a record")


def test_a_file_above_the_limit_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(10**12)  # a terabyte of zeros that takes no space on the disk
    before = time.process_time()
    with pytest.raises(ValueError, match=r"x\.json' is too large.*1,000 bytes"):
        read_json_object(tmp_path / "x.json", 1000, "a record")
    assert time.process_time() - before < 1


def test_a_named_pipe_and_a_device_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ValueError, match="not a regular file"):
            read_limited(path, 100)
