"""Image files with random changes are read, or refused with a reason, in bounded time and memory."""

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import strategies as st

from fuzz import budget
from fuzz.image_target import REGRESSIONS, check_image, seed_images
from fuzz.mutations import mutated, with_png_checksums


def test_the_images_to_start_from():
    seeds = seed_images()
    assert len(seeds) > 30
    for content in seeds:
        check_image(content)


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.*")), ids=lambda path: path.name)
def test_files_on_which_an_earlier_version_failed(path):
    check_image(path.read_bytes())


def test_mutated_images():
    changed = mutated(seed_images())
    latest = b""

    def check(content: bytes) -> None:
        nonlocal latest
        latest = content
        check_image(content)

    try:
        budget.fuzz(check, changed | changed.map(with_png_checksums) | st.binary(max_size=200), seconds=5)
    except Exception:
        if budget.SECONDS is not None:  # Hypothesis ends with the smallest file
            (REGRESSIONS / f"{hashlib.sha256(latest).hexdigest()[:12]}.bin").write_bytes(latest)
        raise


@pytest.mark.skipif(budget.SECONDS is None, reason="only in 'make fuzz'")
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
def test_mutated_images_with_atheris(tmp_path):
    for number, content in enumerate(seed_images()):
        (tmp_path / str(number)).write_bytes(content)
    process = subprocess.run(
        [
            sys.executable, "-m", "fuzz.atheris_images", str(tmp_path), f"-max_total_time={budget.SECONDS:.0f}",
            "-max_len=4096", "-rss_limit_mb=1500", f"-timeout={budget.MAX_EXAMPLE_SECONDS:.0f}",
            f"-artifact_prefix={REGRESSIONS}/",
        ],
        cwd=Path(__file__).parent.parent, env=os.environ, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-3000:]
    assert "DONE" in process.stderr
