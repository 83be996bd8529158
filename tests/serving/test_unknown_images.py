"""Predictor and server use the detector of unknown images that is stored with a model."""

import io
import pickle

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from serving.conftest import SIZE, spots
from tigranet.serving.application import create_application
from tigranet.serving.predictor import Predictor
from tigranet.workflows.predict import predict

NOISE = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE), dtype=np.uint8)
BLANK = np.full((SIZE, SIZE), 90, np.uint8)


def png(image):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def predictor(detecting_model):
    return Predictor(detecting_model, device="cpu")


@pytest.fixture(scope="module")
def images():
    return [*spots(6, seed=1), *spots(2, side=31, seed=2), NOISE, BLANK]


def test_the_answers_are_those_of_predict(predictor, images, tmp_path):
    paths = [tmp_path / f"{number}.png" for number in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        path.write_bytes(png(image))
    expected = predict(predictor.model, paths, device="cpu").predictions
    answer = predictor({"image": images})
    assert answer["label"].tolist() == [row.label for row in expected]
    assert answer["unknown"].tolist() == [row.novelty > 1 for row in expected]
    assert answer["probability"] == pytest.approx([row.probability for row in expected], abs=1e-5)
    assert answer["unknown"][-2:].all()
    assert answer["unknown"][:6].sum() <= 2


@pytest.mark.parametrize("side", [SIZE, 31])
def test_quarter_turns_have_bit_for_bit_the_same_answer(predictor, side):
    upright = np.stack([*spots(3, side, seed=3), np.random.default_rng(1).integers(0, 256, (side, side), np.uint8)])
    expected = predictor({"image": upright})
    assert expected["unknown"][-1]
    for turns in range(1, 4):
        turned = predictor({"image": np.rot90(upright, turns, axes=(1, 2))})
        for name, values in expected.items():
            np.testing.assert_array_equal(turned[name], values)
        explanation = predictor.explain(np.rot90(upright[-1], turns))
        assert (explanation.label, explanation.unknown) == ("unknown", True)


def test_the_share_of_known_images_is_a_choice(detecting_model, images):
    known = spots(60, seed=4)
    shares = [0.2, 0.6, 0.95, "off"]
    counts = [
        int(Predictor(detecting_model, device="cpu", unknown=share)({"image": known})["unknown"].sum())
        for share in shares
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[2]
    assert counts[-1] == 0
    off = Predictor(detecting_model, device="cpu", unknown="off")
    assert not off.detects_unknown
    assert not off({"image": images})["unknown"].any()


def test_a_pickle_keeps_the_share(detecting_model, images):
    copy = pickle.loads(pickle.dumps(Predictor(detecting_model, device="cpu", unknown=0.5)))
    assert copy.unknown == 0.5
    assert copy({"image": NOISE})["unknown"] is True
    assert copy({"image": []})["unknown"].shape == (0,)


def test_the_server_says_which_images_are_unknown(predictor, images):
    expected = predictor({"image": images})
    application = create_application({"spots": predictor}, local_only=False)
    with TestClient(application, base_url="http://localhost") as client:
        assert client.get("/models/spots/classes").json()["detects_unknown"] is True
        outputs = client.get("/v2/models/spots").json()["outputs"]
        assert {"name": "unknown", "datatype": "BOOL", "shape": [-1]} in outputs
        for position in (0, len(images) - 2, len(images) - 1):
            for path in ("/predict", "/explain"):
                for turns in range(4):
                    answer = client.post(path, content=png(np.rot90(images[position], turns))).json()
                    assert answer["unknown"] is bool(expected["unknown"][position])
                    assert answer["label"] == expected["label"][position]
        pixels = np.stack([images[0], NOISE])
        tensor = {"name": "image", "shape": list(pixels.shape), "datatype": "UINT8", "data": pixels.ravel().tolist()}
        response = client.post("/v2/models/spots/infer", json={"inputs": [tensor], "outputs": [{"name": "unknown"}]})
        (output,) = response.json()["outputs"]
        assert output == {"name": "unknown", "datatype": "BOOL", "shape": [2], "data": [False, True]}
