"""Each part is a task of Ray: a part whose worker dies is done again, and nothing is done twice."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from bulk_sources import contents, names_of, read_answers, write_parquet
from killing_part import KillingPart
from tigranet.workflows.bulk_prediction import predict_source
from tigranet.workflows.bulk_prediction.plan import Plan
from tigranet.workflows.bulk_prediction.ray_engine import task_layout

IMAGES, PART = 300, 30


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed, or not for this system")
@pytest.mark.filterwarnings("default")  # Ray has warnings of its own
def test_a_worker_that_is_killed_loses_nothing_and_repeats_nothing(tmp_path, model, monkeypatch):
    numbered_parts, killed = Plan.numbered_parts, tmp_path / "killed"

    def with_a_kill(self):
        for number, part in numbered_parts(self):
            yield number, KillingPart(part, str(killed)) if number == 1 else part

    monkeypatch.setattr(Plan, "numbered_parts", with_a_kill)
    folders = (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))  # the workers import KillingPart
    source, answers = write_parquet(tmp_path / "a.parquet", IMAGES, rows_per_group=PART), tmp_path / "answers"
    result = predict_source(model, source, answers, engine="ray", workers=2, part_size=PART, device="cpu")
    assert killed.exists()
    assert (result.images, result.parts, result.resumed_parts) == (IMAGES, IMAGES // PART, 0)
    assert names_of(read_answers(answers)) == list(contents(IMAGES))


@pytest.mark.parametrize(
    ("resources", "device", "workers", "expected"),
    [
        ({"CPU": 4.0}, "auto", None, (4, 0, True)),
        ({"CPU": 4.0}, "auto", 3, (3, 0, False)),
        ({"CPU": 4.0}, "auto", 9, (4, 0, True)),
        ({"CPU": 48.0, "GPU": 2.0}, "cpu", None, (48, 0, True)),
        ({"CPU": 48.0, "GPU": 2.0}, "auto", None, (2, 1, True)),
        ({"CPU": 48.0, "GPU": 2.0}, "auto", 1, (1, 1, False)),
        ({"CPU": 48.0, "GPU": 2.0}, "cuda", 48, (48, 0.0416, True)),
    ],
)
def test_tasks_share_the_cores_and_gpus_of_a_cluster(resources, device, workers, expected):
    layout = task_layout(resources, device, workers)
    assert layout == expected
    assert layout.running * layout.gpus_per_task <= resources.get("GPU", 0)


def test_without_ray_the_message_names_the_extra(tmp_path, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    source = write_parquet(tmp_path / "a.parquet", 2)
    with pytest.raises(ModuleNotFoundError, match=r"tigranet\[ray\]"):
        predict_source(model, source, tmp_path / "answers", engine="ray", device="cpu")
