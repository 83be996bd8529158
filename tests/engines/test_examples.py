"""The examples for Ray Data, Daft and Spark give the answers of ``Predictor``."""

import importlib.util
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bulk_sources import BAD, contents, write_parquet
from tigranet.serving import Predictor

EXAMPLES = Path(__file__).parents[2] / "examples" / "engines"
COUNT = 20


@pytest.mark.parametrize(
    ("module", "program"), [("ray", "ray_data"), ("daft", "daft_frames"), ("pyspark", "spark_frames")]
)
def test_an_example_gives_the_answers_of_the_predictor(tmp_path, model, module, program):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: 'make test-engines' installs it")
    if module == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    if "TIGRANET_ENGINES" not in os.environ:
        pytest.skip("takes half a minute: 'make test-engines' runs it")
    images, answers = write_parquet(tmp_path / "images.parquet", COUNT), tmp_path / "answers"
    command = [sys.executable, EXAMPLES / f"{program}.py", model, images, answers]
    subprocess.run(command, check=True, timeout=600, env={**os.environ, "PYSPARK_PYTHON": sys.executable})
    rows = [row for file in sorted(answers.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    assert sorted(row["path"] for row in rows) == list(contents(COUNT))
    expected = Predictor(model, on_error="column", device="cpu")({"image": list(contents(COUNT).values())})
    for row in rows:
        number = int(row["path"].split(".")[0])
        assert (row["label"], row["error"]) == (expected["label"][number], expected["error"][number])
        if number != BAD:
            assert row["probability"] == pytest.approx(float(expected["probability"][number]), abs=1e-5)
        else:
            assert row["probability"] is None or math.isnan(row["probability"])
