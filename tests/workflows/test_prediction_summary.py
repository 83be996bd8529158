from pathlib import Path

from tigranet.data import UnreadableFile
from tigranet.evaluation import Prediction
from tigranet.workflows.prediction_summary import PredictionCounter, PredictionSummary


def test_results_are_counted_while_they_pass():
    results = [Prediction("x", label, 0.5) for label in ("unknown", "b", "a", "unknown", "b", "unknown")]
    results.insert(2, UnreadableFile(Path("y"), "the file is empty"))
    counter = PredictionCounter()
    assert list(counter.count(results)) == results
    assert list(counter.summary.counts.items()) == [("b", 2), ("a", 1), ("unknown", 3)]
    assert (counter.summary.images, counter.summary.unreadable) == (6, 1)


def test_of_many_labels_the_most_frequent_are_listed():
    counts = {f"class {number}": 300 - number for number in range(200)} | {"unknown": 4}
    heading, *lines = PredictionSummary(counts).describe(max_listed=3)
    assert len(lines) == 5
    assert lines[3].split()[:3] == ["197", "other", "labels"]
    assert lines[4].split()[:2] == ["unknown", "4"]
    assert heading == f"{sum(counts.values()):,} images have a prediction"


def test_long_and_hostile_labels_stay_one_short_line():
    lines = PredictionSummary({"x" * 500: 1, "a\nb\x1b[31m": 1}).describe()
    assert len(lines) == 3
    assert all(len(line) < 80 and line.isprintable() for line in lines)


def test_a_single_image_and_no_image_are_described():
    assert PredictionSummary({"a": 1}).describe() == ["1 image has a prediction", "  a  1  100.0 %"]
    assert PredictionSummary({}, 2).describe() == ["0 images have a prediction, 2 could not be read"]
