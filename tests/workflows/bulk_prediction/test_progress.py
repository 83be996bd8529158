import io

from rich.console import Console

from tigranet.workflows.bulk_prediction import progress
from tigranet.workflows.bulk_prediction.answer_folder import AnswerFolder
from tigranet.workflows.bulk_prediction.part_predictor import PartAnswer
from tigranet.workflows.bulk_prediction.plan import Identity, Plan


def test_the_expected_duration_counts_neither_earlier_calls_nor_the_start_of_the_workers(monkeypatch):
    times = iter([100.0, 140.0, 150.0])
    monkeypatch.setattr(progress, "perf_counter", lambda: next(times))
    console = Console(file=io.StringIO(), width=100)
    plan = Plan(AnswerFolder("/a"), Identity("m", "0", (), {}), "sum", parts=10, images=100)
    with progress.BulkProgress(plan, 50, 5, console) as bar:
        bar.advance(PartAnswer(5, 10, 0))
        bar.advance(PartAnswer(6, 10, 0))
    text = console.file.getvalue()
    assert "5 of 10 parts were finished before, with 50 images" in text
    assert text.count("expected duration: about 30 s more") == 1
