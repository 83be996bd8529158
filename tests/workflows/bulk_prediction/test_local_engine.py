import multiprocessing

import pytest

from bulk_sources import contents, names_of, read_answers, write_tar
from tigranet.usable_cores import usable_cores
from tigranet.workflows.bulk_prediction import local_engine, predict_source, progress
from tigranet.workflows.bulk_prediction.local_engine import default_workers


def test_a_worker_that_is_killed_is_replaced_and_its_part_is_done_again(tmp_path, model, monkeypatch):
    advance, killed = progress.BulkProgress.advance, []

    def kill_once(self, answer):
        advance(self, answer)
        if not killed:
            killed.append(multiprocessing.active_children()[0])
            killed[0].kill()

    monkeypatch.setattr(progress.BulkProgress, "advance", kill_once)
    source = write_tar(tmp_path / "a.tar", 12)
    result = predict_source(model, source, tmp_path / "answers", device="cpu", workers=2, part_size=2)
    assert len(killed) == 1
    assert (result.images, result.parts) == (12, 6)
    assert names_of(read_answers(tmp_path / "answers")) == list(contents(12))
    assert multiprocessing.active_children() == []


def test_an_error_of_a_worker_is_the_error_of_the_run(tmp_path, model, monkeypatch):
    source, work = write_tar(tmp_path / "a.tar", 4), local_engine.predict_locally

    def with_another_file(job, parts, workers):
        source.write_bytes(source.read_bytes() + b"\0" * 10240)
        return work(job, parts, workers)

    monkeypatch.setattr("tigranet.workflows.bulk_prediction.workflow.predict_locally", with_another_file)
    with pytest.raises(OSError, match=r"a\.tar.*changed"):
        predict_source(model, source, tmp_path / "answers", device="cpu", workers=1, part_size=2)


def test_the_cpu_has_one_worker_per_core():
    assert default_workers("cpu") == usable_cores() >= 1
