import base64
import csv
import io
from dataclasses import replace

import pytest

from tigranet.figures.report_tables import MAX_TABLE_ROWS, class_csv_uri, most_frequent_classes


def test_the_table_of_classes_can_be_downloaded(measured):
    report, _ = measured
    named = replace(report, classes=(replace(report.classes[0], name="=1+1"), *report.classes[1:]))
    text = base64.b64decode(class_csv_uri(named).split(",")[1]).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0]["class"] == "'=1+1"  # a spreadsheet must not execute a name
    assert [int(row["test_images"]) for row in rows] == [metrics.support for metrics in report.classes]
    assert [float(row["recall"]) for row in rows] == pytest.approx([row.recall for row in report.classes], abs=1e-4)
    assert all(float(row["recall_low"]) <= float(row["recall"]) <= float(row["recall_high"]) for row in rows)


def test_the_most_frequent_classes_are_shown_in_their_order():
    counts = [1] * (MAX_TABLE_ROWS + 1)
    counts[0], counts[5] = 0, 9
    assert most_frequent_classes({"train": counts, "test": [0] * len(counts)}) == [*range(1, MAX_TABLE_ROWS + 1)]
    assert most_frequent_classes({"train": [3, 1, 2]}) == [0, 1, 2]
