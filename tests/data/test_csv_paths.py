import pytest

from tigranet.data import UnreadableFile
from tigranet.data.csv_paths import csv_paths


def paths_of(table, text):
    table.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(csv_paths(table))


@pytest.mark.parametrize(
    "text", ["path\na.png\nb/c.png\n", "label;File\nx;a.png\n;b/c.png\n", "﻿IMAGE\tn\r\na.png\t1\r\nb/c.png\n"]
)
def test_paths_are_relative_to_the_folder_of_the_table(tmp_path, text):
    assert paths_of(tmp_path / "t.csv", text) == [tmp_path / "a.png", tmp_path / "b" / "c.png"]


def test_absolute_paths_stay_and_quoted_formulas_are_unquoted(tmp_path):
    other = tmp_path / "other" / "x.png"
    assert paths_of(tmp_path / "t.csv", f"path\n{other}\n'=1.png\n") == [other, tmp_path / "=1.png"]


def test_a_row_without_a_path_does_not_stop_the_others(tmp_path):
    first, bad, last = paths_of(tmp_path / "t.csv", "path,label\na.png,x\n,x\nb.png,x\n")
    assert (first, last) == (tmp_path / "a.png", tmp_path / "b.png")
    assert "line 3" in bad.reason


@pytest.mark.parametrize(
    ("text", "count", "words"),
    [
        ("", 0, "no rows"),
        ("where\na.png\n", 0, "no column 'path'"),
        ("path,path\na.png,b\n", 0, "2 columns 'path'"),
        ("path\na.png\n".encode("utf-16"), 0, "UTF-8"),
        ("path\na.png\n\xff.png\n".encode("latin-1"), 0, "UTF-8"),
        ('path,x\na.png,1\nb.png,"open\n', 1, "line 3"),
        ("path\na.png\nb.png,more,values\n", 1, "line 3"),
    ],
)
def test_a_table_that_cannot_be_read_is_reported_after_the_rows_before_it(tmp_path, text, count, words):
    *paths, last = paths_of(tmp_path / "t.csv", text)
    assert len(paths) == count
    assert isinstance(last, UnreadableFile)
    assert last.path == tmp_path / "t.csv"
    assert words in last.reason
