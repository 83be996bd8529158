import numpy as np
import pytest
import torch
from PIL import Image

from tigranet.serving.explanation import explain_image
from tigranet.serving.image_input import RotatedImage
from tigranet.serving.predictor import Predictor
from tigranet.workflows.explain import explain


@pytest.mark.parametrize("model", ["grey", "color"])
@pytest.mark.parametrize("side", [12, 31])
def test_quarter_turns_have_bit_for_bit_the_same_probabilities_and_rotated_maps(predictors, model, side):
    image = np.random.default_rng(side).integers(0, 256, (side, side, 3), dtype=np.uint8)
    upright = predictors[model].explain(image)
    for turns in range(1, 4):
        turned = predictors[model].explain(np.rot90(image, turns))
        assert torch.equal(turned.probabilities, upright.probabilities)
        assert torch.equal(turned.evidence, torch.rot90(upright.evidence, turns, (0, 1)))
        assert (turned.score, turned.constant) == (upright.score, upright.constant)


@pytest.mark.parametrize("shape", [(12, 12), (20, 14, 3)])
def test_the_explanation_is_that_of_a_file(predictors, color_model, shape, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    Image.fromarray(pixels).convert("RGB").save(tmp_path / "image.png")
    content = (tmp_path / "image.png").read_bytes()
    for explained_class in (None, "b"):
        (expected,) = explain(
            color_model, tmp_path / "image.png", explained_class=explained_class, device="cpu"
        ).explanations
        actual = predictors["color"].explain(content, explained_class)
        assert actual.explained_class == expected.explained_class
        torch.testing.assert_close(actual.evidence, expected.evidence)
        assert actual.score == pytest.approx(expected.score, abs=1e-5)
        assert actual.constant == pytest.approx(expected.constant, abs=1e-5)
        assert float(actual.probabilities.max()) == pytest.approx(expected.prediction.probability, abs=2e-6)


def test_the_map_and_the_constant_sum_to_the_score(predictors, pixels):
    explanation = predictors["grey"].explain(pixels[0])
    assert float(explanation.evidence.double().sum()) + explanation.constant == pytest.approx(explanation.score)


def test_a_class_that_does_not_exist_is_named(predictors):
    image = RotatedImage(torch.zeros(1, 12, 12), 0)
    with pytest.raises(ValueError, match=r"'d'.*a, b, ç"):
        explain_image(predictors["grey"].network, image, "d")


def test_an_explanation_without_finite_numbers_is_an_error(grey_model, pixels):
    predictor = Predictor(grey_model, device="cpu")
    with torch.no_grad():
        next(predictor.network.classifier.parameters()).fill_(torch.inf)
    with pytest.raises(ValueError, match="no finite answer"):
        predictor.explain(pixels[0])
