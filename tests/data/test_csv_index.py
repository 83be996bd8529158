import pytest

from tigranet.data.csv_index import index_csv


def test_a_table_has_paths_labels_parts_and_groups(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("\ufeffFile;Class;Split;Sample\nx/1.png;nut;train;A\n2.png;bolt;val;B\n/3.png;nut;TEST;C\n")
    index = index_csv(table, group="sample")
    assert index.class_names == ("bolt", "nut")
    assert [path.as_posix() for path in index.paths] == [f"{tmp_path}/x/1.png", f"{tmp_path}/2.png", "/3.png"]
    assert index.labels == (1, 0, 1)
    assert index.parts == ("train", "validation", "test")
    assert index.groups == ("A", "B", "C")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_parts_and_groups_are_optional_and_the_delimiter_is_detected(tmp_path, delimiter):
    table = tmp_path / "table.tsv"
    table.write_text("path,label\n1.png,a\n2.png,b\n".replace(",", delimiter))
    index = index_csv(table)
    assert index.labels == (0, 1)
    assert index.parts == ("", "")
    assert index.groups is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", ["no rows", "header"]),
        ("path,label\n", ["no rows", "header"]),
        ("name,label\n1.png,a\n", ["'path'", "name, label"]),
        ("path,kind\n1.png,a\n", ["'label'", "path, kind"]),
        ("path,label\n1.png,a\n2.png,\n", ["line 3", "'label'"]),
        ("path,label\n1.png,a\n2.png\n", ["line 3", "'label'"]),
        ("path,label\n1.png,a\n2.png,a\n", ["at least 2 classes", "'a'"]),
        ("path,label,part\n1.png,a,some\n", ["line 2", "train, val or test", "'some'"]),
        ("path,label\n1.png,a\n2.png,b\n", ["'sample'", "path, label"]),
    ],
)
def test_a_wrong_table_is_reported_with_the_line_or_column(tmp_path, text, values):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=r"t\.csv") as error:
        index_csv(tmp_path / "t.csv", group="sample")
    for value in values:
        assert value in str(error.value)


def test_a_table_must_be_text_in_utf_8(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"path,label\n\xff\xfe,a")
    with pytest.raises(ValueError, match=r"t\.csv.*UTF-8"):
        index_csv(tmp_path / "t.csv")
