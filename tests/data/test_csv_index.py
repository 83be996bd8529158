import os

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
        index_csv(tmp_path / "t.csv", group="sample" if "'sample'" in values else None)
    for value in values:
        assert value in str(error.value)


def test_a_table_must_be_text_in_utf_8(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"path,label\n\xff\xfe,a")
    with pytest.raises(ValueError, match=r"t\.csv.*UTF-8"):
        index_csv(tmp_path / "t.csv")


def test_repeated_rows_count_once(tmp_path):
    rows = ["1.png,a,train,x", "1.png, a ,TRAIN,x", "./1.png,a,train,x", "1.png,a,train,x", "2.png,b,train,y"]
    (tmp_path / "t.csv").write_text("\n".join(["path,label,part,sample", *rows]))
    index = index_csv(tmp_path / "t.csv", group="sample")
    assert [path.name for path in index.paths] == ["1.png", "2.png"]
    assert (index.labels, index.parts, index.groups) == ((0, 1), ("train", "train"), ("x", "y"))
    assert index.repeated_rows == 3


def test_rows_that_differ_in_label_part_or_group_stay(tmp_path):
    rows = ["1.png,a,train,x", "1.png,b,train,x", "1.png,a,test,x", "1.png,a,train,y"]
    (tmp_path / "t.csv").write_text("\n".join(["path,label,part,sample", *rows]))
    index = index_csv(tmp_path / "t.csv", group="sample")
    assert (len(index.paths), index.repeated_rows) == (4, 0)
    assert index_csv(tmp_path / "t.csv").repeated_rows == 1  # without groups, the last row repeats the first


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("path,label\n1.png,a\n2\0.png,b\n", ["line 3", "NUL", "'path'"]),
        ("path,label\n1.png,a\0\n2.png,b\n", ["line 2", "NUL", "'label'"]),
        ("path,label,sample\n1.png,a,\0\n2.png,b,x\n", ["line 2", "NUL", "'sample'"]),
        ("path,label,sample\n1.png,a,x\n2.png,b,\n", ["line 3", "'sample'"]),
        ('path,label,sample\n"1\n.png",a,x\n\n2\0.png,b,x\n', ["line 5", "NUL"]),  # lines of the file, not rows
        ('path,label,sample\n1.png,a,x\n"2.png,b,x\n3.png,b,x\n', ["line 3", "quotation mark"]),
        ('path,label,sample\n1.png,a,x\n"2.png"z,b,x\n', ["line 3", "quotation mark"]),
        (f"path,label,sample\n{'x' * 200_000},a,x\n2.png,b,x\n", ["line 2", "131072"]),
        (f"{'x' * 200_000},label,sample\n1.png,a,x\n", ["line 1", "131072"]),
        ("path,label,sample\n1,5.png,a,x\n2.png,b,x\n", ["line 2", "4 values", "3 columns"]),
        ("path,label,Path,sample\n1.png,a,2.png,x\n", ["2 columns 'path'"]),
        ("path,label,label,sample\n1.png,a,b,x\n", ["2 columns 'label'"]),
        ("path,label,part,PART,sample\n1.png,a,train,test,x\n", ["2 columns 'part'"]),
        ("path,label,sample,sample\n1.png,a,x,y\n", ["2 columns 'sample'"]),
        (f"{'x,' * 9_000}\n1.png,a\n", ["'path'", "x, x"]),
        ("\0" * 100, ["UTF-8"]),
        ("\n\n\n", ["no rows"]),
    ],
)
def test_hostile_content_is_refused_with_the_line_or_column(tmp_path, text, values):
    (tmp_path / "t.csv").write_text(text, newline="")
    with pytest.raises(ValueError, match=r"t\.csv") as error:
        index_csv(tmp_path / "t.csv", group="sample" if "sample" in text else None)
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 500
    for value in values:
        assert value in message


def test_empty_cells_at_the_end_and_unused_columns_are_accepted(tmp_path):
    (tmp_path / "t.csv").write_text("path,label,note,note\n1.png,a,,,,\n\n2.png,b\n")
    index = index_csv(tmp_path / "t.csv")
    assert [path.name for path in index.paths] == ["1.png", "2.png"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_of_unicode_are_named(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("path,label\n1.png,a\n2.png,b\n".encode(encoding))
    with pytest.raises(ValueError, match=r"t\.csv.*UTF-8"):
        index_csv(tmp_path / "t.csv")


def test_only_a_regular_file_is_read(tmp_path):
    """A pipe would block the reader for ever, and a device need not end."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "device.csv").symlink_to("/dev/zero")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    for name in ("pipe", "device", "folder", "loop"):
        with pytest.raises(ValueError, match=rf"{name}\.csv.*regular file"):
            index_csv(tmp_path / f"{name}.csv")
    (tmp_path / "t.csv").write_text("path,label\n1.png,a\n2.png,b\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    assert len(index_csv(tmp_path / "link.csv").paths) == 2


def test_a_file_with_holes_does_not_fill_the_memory(tmp_path):
    table = tmp_path / "table.csv"
    with table.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(ValueError, match=r"table\.csv.*too large"):
        index_csv(table)
    with table.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(ValueError, match=r"line 1 of .*table\.csv"):
        index_csv(table)


def test_control_characters_in_a_header_are_escaped_in_the_message(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("where\x0cis\x1b[31mit,label\na,b\n")
    with pytest.raises(ValueError, match=r"where\\x0cis\\x1b\[31mit"):
        index_csv(table)


def test_a_label_that_was_quoted_is_unquoted_once(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("path,label\n1.png,''=1\n2.png,'=1\n")
    assert index_csv(table).class_names == ("'=1", "=1")
