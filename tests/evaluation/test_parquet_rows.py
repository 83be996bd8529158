import pyarrow as pa

from tigranet.evaluation.parquet_rows import parquet_row, parquet_schema


def test_text_columns_are_strings_and_others_are_numbers():
    schema = parquet_schema(["path", "label", "label_1", "probability", "p_error", "error"], {"key": "value"})
    is_text = {field.name: field.type == pa.string() for field in schema}
    assert [name for name, text in is_text.items() if text] == ["path", "label", "label_1", "error"]
    assert schema.metadata == {b"key": b"value"}


def test_names_that_are_not_utf_8_can_be_written():
    row = parquet_row({"path": "a\udcff.png", "p_\udcff": 0.5, "error": None})
    assert row == {"path": "a\ufffd.png", "p_\ufffd": 0.5, "error": None}
    assert pa.Table.from_pylist([row], parquet_schema(["path", "p_\udcff", "error"])).to_pylist() == [row]
