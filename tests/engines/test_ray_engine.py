"""Each part is a task of Ray: what dies is done again, and nothing is done twice."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bulk_sources import contents, names_of, read_answers, write_parquet
from engines.ray_processes import started_workers
from tigranet.workflows.bulk_prediction import predict_source, progress

pytest.importorskip("ray", reason="Ray is not installed: 'make test-engines' installs it")
pytestmark = pytest.mark.filterwarnings("default")  # Ray has warnings of its own

IMAGES, PART = 24, 4


def test_a_worker_that_is_killed_loses_nothing_and_repeats_nothing(tmp_path, model, monkeypatch):
    advance, killed = progress.BulkProgress.advance, []

    def kill_once(self, answer):
        advance(self, answer)
        if not killed and (workers := started_workers(os.getpid())):
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    monkeypatch.setattr(progress.BulkProgress, "advance", kill_once)
    source = write_parquet(tmp_path / "a.parquet", IMAGES, rows_per_group=PART)
    answers = tmp_path / "answers"
    result = predict_source(model, source, answers, engine="ray", workers=1, part_size=PART, device="cpu")
    assert killed
    assert (result.images, result.parts, result.resumed_parts) == (IMAGES, IMAGES // PART, 0)
    assert names_of(read_answers(answers)) == list(contents(IMAGES))


@pytest.mark.skipif("TIGRANET_ENGINES" not in os.environ, reason="takes 30 s: 'make test-engines' runs it")
def test_after_the_driver_is_killed_the_same_command_continues(tmp_path, model):
    source = write_parquet(tmp_path / "a.parquet", IMAGES, rows_per_group=PART)
    answers = tmp_path / "answers"
    command = [sys.executable, "-m", "tigranet", "predict", model, source, "-o", answers, "--engine", "ray"]
    command = [*map(str, command), "--workers", "2", "--part-size", "1", "--device", "cpu"]
    driver = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 300
    while not list(answers.glob("part-*")) and time.monotonic() < deadline:
        assert driver.poll() is None
        time.sleep(0.01)
    driver.kill()
    driver.wait()
    assert not (answers / "_manifest.json").exists()
    subprocess.run(command, check=True, timeout=300)
    assert names_of(read_answers(answers)) == list(contents(IMAGES))
