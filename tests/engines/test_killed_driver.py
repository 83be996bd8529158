"""A driver that is killed loses nothing: the same command continues."""

import os
import subprocess
import sys
import time

import pytest

from bulk_sources import contents, names_of, read_answers, write_parquet

pytestmark = pytest.mark.filterwarnings("default")  # Ray has warnings of its own

IMAGES, PART = 24, 4


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
