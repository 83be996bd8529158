import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigranet.csv_text import quote_formula, unquote_formula
from tigranet.data.csv_index import index_csv
from tigranet.evaluation.row_writer import open_row_writer


@given(st.text() | st.text("'=+-@\t\r\nx", max_size=5))
def test_no_quoted_text_begins_like_a_formula_and_all_text_is_restored(text):
    quoted = quote_formula(text)
    assert quoted[:1] not in set("=+-@\t\r\n")
    assert unquote_formula(quoted) == text


@pytest.mark.parametrize("text", ["nut", "", "1.5", "'quoted'", "a=b", "a-b", " =1", "é"])
def test_ordinary_text_stays(text):
    assert quote_formula(text) == unquote_formula(text) == text


def test_a_table_that_was_written_can_be_read_as_labelled_images(tmp_path):
    """The paths and labels of predictions are those of the images, although some begin like formulas."""
    labels = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "'=quoted", "plain"]
    paths = ["-a.png", "=b.png", "+c.png", "@d.png", "'-e.png", "folder/f.png"]
    with open_row_writer(["path", "label", "probability"], tmp_path / "out.csv") as write:
        for path, label in zip(paths, labels, strict=True):
            write({"path": path, "label": label, "probability": -0.5})
    cells = list(csv.reader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert all(cell[0] not in "=+-@" for row in cells for cell in row[:2])
    assert [row[2] for row in cells[1:]] == ["-0.5"] * 6  # a negative number is a number
    index = index_csv(tmp_path / "out.csv")
    assert [path.relative_to(tmp_path).as_posix() for path in index.paths] == paths
    assert [index.class_names[label] for label in index.labels] == labels
