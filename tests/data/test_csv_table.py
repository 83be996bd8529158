import pytest

from tigranet.data.csv_table import open_table


def write(path, text):
    path.write_text(text)
    return path


def test_rows_are_read_with_the_numbers_of_their_lines(tmp_path):
    with open_table(write(tmp_path / "t.csv", 'A,b\n\n1,"two\nlines"\n3,4\n')) as table:
        assert table.header == ["A", "b"]
        assert (table.find_column(("a",)), table.has_column(("x", "b")), table.has_column(("x",))) == (0, True, False)
        assert list(table) == [(3, ["1", "two\nlines"]), (5, ["3", "4"])]


def test_rows_are_read_when_they_are_asked_for(tmp_path):
    with open_table(write(tmp_path / "t.csv", "a\n1\n2,3\n")) as table:
        rows = iter(table)
        assert next(rows) == (2, ["1"])
        with pytest.raises(ValueError, match="line 3"):
            next(rows)


def test_a_missing_value_names_the_line_and_the_column(tmp_path):
    with open_table(write(tmp_path / "t.csv", "a,b\n1\n")) as table:
        ((line, row),) = table
        assert table.value(line, row, 0) == "1"
        with pytest.raises(ValueError, match=r"line 2 .*'b'"):
            table.value(line, row, 1)
