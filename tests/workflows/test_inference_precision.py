"""Every workflow that applies a network passes the precision on, and gives nearly the answers of single precision."""

import numpy as np
import pytest
import torch

from images import fill
from tigranet import TIGraNet, inference_precision
from tigranet.serving import Predictor
from tigranet.workflows import (
    bulk_prediction,
    evaluate,
    explain,
    features,
    predict,
    report,
)


@pytest.fixture
def precisions(monkeypatch):
    """The precisions that networks are asked to compute in, on a CPU that has all of them."""
    asked = []
    compute_in = TIGraNet.compute_in

    def record(self, precision):
        asked.append(precision)
        return compute_in(self, precision)

    monkeypatch.setattr(TIGraNet, "compute_in", record)
    monkeypatch.setattr(inference_precision, "computes_with", lambda device, dtype: True)
    return asked


@pytest.fixture
def group_model(tmp_path):
    net = TIGraNet("LC[2,3]-D-MO[4]-S[0]", 2, class_names=["a", "b"], image_size=12)
    net.train()(torch.rand(8, 1, 12, 12))
    net.save_pretrained(tmp_path / "group")
    return tmp_path / "group"


WORKFLOWS = {
    "predict": lambda model, images, **options: predict.predict(model, images, **options),
    "explain": lambda model, images, **options: explain.explain(model, images, **options),
    "features": lambda model, images, **options: features.features(model, images, **options),
    "evaluate": lambda model, images, **options: evaluate.evaluate(model, images, **options),
    "report": lambda model, images, **options: report.report(model, images, cnn=False, curve_images=4, **options),
}


@pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS)
def test_workflows_compute_in_the_precision(workflow, folder, group_model, precisions):
    workflow(group_model, folder, device="cpu", precision="bf16")
    assert precisions == ["bf16"]


def test_probabilities_and_features_are_rounded_but_close(folder, group_model, precisions):
    single, half = (predict.predict(group_model, folder, precision=each).predictions for each in ("32", "bf16"))
    difference = np.abs([a.probability - b.probability for a, b in zip(single, half, strict=True)])
    assert 0 < difference.max() < 0.02
    single, half = (features.features(group_model, folder, precision=each).values for each in ("32", "bf16"))
    assert 0 < (half - single).norm() < 0.01 * single.norm()


def test_a_function_for_pipelines_computes_in_the_precision(group_model, precisions, without_shape_checks):
    image = np.random.default_rng(0).random((1, 12, 12), dtype=np.float32)
    single, half = (Predictor(group_model, device="cpu", precision=each)({"image": image}) for each in ("32", "bf16"))
    assert precisions == ["32", "bf16"]
    assert 0 < np.abs(single["probabilities"] - half["probabilities"]).max() < 0.02
    with pytest.raises(ValueError, match=r"precision.*'8'"):
        Predictor(group_model, precision="8")


def test_many_images_are_computed_in_the_precision_of_their_plan(
    tmp_path, group_model, precisions, without_shape_checks
):
    source, output = str(fill(tmp_path / "many", {"a": 3})), tmp_path / "answers"
    options = {"workers": 1, "device": "cpu"}
    result = bulk_prediction.predict_source(group_model, [source], str(output), precision="bf16", **options)
    assert (result.images, precisions) == (3, ["bf16"])
    with pytest.raises(ValueError, match="another set of options"):
        bulk_prediction.predict_source(group_model, [source], str(output), **options)
    with pytest.raises(ValueError, match=r"precision.*'8'"):
        bulk_prediction.predict_source(group_model, [source], str(tmp_path / "other"), precision="8", **options)


def test_a_plan_in_single_precision_does_not_name_it(tmp_path, group_model):
    """So that plans of earlier versions are continued."""
    source, output = str(fill(tmp_path / "many", {"a": 3})), tmp_path / "answers"
    bulk_prediction.predict_source(group_model, [source], str(output), workers=1, device="cpu")
    assert "precision" not in (output / "_plan.jsonl").read_text()
