import asyncio
import base64
import gzip
import io
import json
import re
import struct
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from hostile.binary_formats import zeros_deflated
from tigranet.serving.application import STATIC_FOLDER, ModelServer
from tigranet.serving.limits import ServerLimits
from tigranet.serving.structured_log import LOGGER


def png(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def part(kind, data):
    """A part of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_that_declares(width, height, *parts):
    """A small file whose header promises a large image of zeros."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zeros_deflated(10_000_000)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + b"".join(parts) + part(b"IDAT", pixels) + part(b"IEND", b"")


def tensor(pixels):
    return {"name": "image", "shape": list(pixels.shape), "datatype": "UINT8", "data": pixels.ravel().tolist()}


def outputs_of(response):
    assert response.status_code == 200, response.text
    return {output["name"]: output for output in response.json()["outputs"]}


def test_health_and_metadata_follow_the_protocol(client):
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    server = client.get("/v2").json()
    assert server == client.get("/v2/").json()
    assert set(server) == {"name", "version", "extensions"}
    assert client.get("/v2/models").json() == {"models": ["grey", "color"]}
    assert client.get("/v2/models/color/ready").json() == {"name": "color", "ready": True}
    assert client.get("/v2/models/color").json()["inputs"][0]["shape"] == [-1, -1, -1, 3]
    about = {"model": "grey", "classes": ["a", "b", "ç"], "image_size": 12, "detects_unknown": False}
    assert client.get("/models/grey/classes").json() == about


def test_a_server_is_ready_only_between_its_warm_up_and_its_end(predictors):
    server = ModelServer(predictors, ServerLimits())
    assert not server.is_ready

    async def states():
        async with server.lifespan(None):
            during = server.is_ready
        return during, server.is_ready

    assert asyncio.run(states()) == (True, False)


@pytest.mark.parametrize("model", ["grey", "color"])
def test_the_answers_are_those_of_the_predictor(client, predictors, model, pixels):
    expected = predictors[model]({"image": pixels})
    outputs = outputs_of(client.post(f"/v2/models/{model}/infer", json={"id": "1", "inputs": [tensor(pixels)]}))
    assert outputs["label"]["data"] == expected["label"].tolist()
    assert outputs["probabilities"]["shape"] == [3, 3]
    np.testing.assert_allclose(outputs["probabilities"]["data"], expected["probabilities"].ravel(), atol=1e-6)
    single = client.post("/predict", params={"model": model}, content=png(pixels[1])).json()
    assert single["model"] == model
    assert single["label"] == expected["label"][1]
    assert single["probability"] == pytest.approx(float(expected["probability"][1]), abs=2e-6)
    assert list(single["probabilities"]) == ["a", "b", "ç"]
    assert single["unknown"] is False
    assert outputs["unknown"]["data"] == [False] * 3


def test_binary_data_gives_the_same_answer(client, pixels):
    reference = outputs_of(client.post("/v2/models/grey/infer", json={"inputs": [tensor(pixels)]}))
    inputs = [tensor(pixels) | {"parameters": {"binary_data_size": pixels.nbytes}}]
    del inputs[0]["data"]
    outputs = [{"name": "probabilities", "parameters": {"binary_data": True}}]
    header = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    response = client.post(
        "/v2/models/grey/infer",
        content=header + pixels.tobytes(),
        headers={"Inference-Header-Content-Length": str(len(header))},
    )
    json_bytes = int(response.headers["Inference-Header-Content-Length"])
    values = np.frombuffer(response.content[json_bytes:], "<f4")
    np.testing.assert_allclose(values, reference["probabilities"]["data"], atol=1e-6)


def test_files_of_different_sizes_may_be_sent_together(client, predictors, pixels):
    files = [png(pixels[0]), png(pixels[1][:9])]
    data = [base64.b64encode(file).decode() for file in files]
    request = {"inputs": [{"name": "image", "shape": [2], "datatype": "BYTES", "data": data}]}
    expected = predictors["color"]({"image": files})
    outputs = outputs_of(client.post("/v2/models/color/infer", json=request))
    assert outputs["label"]["data"] == expected["label"].tolist()


def test_concurrent_requests_get_their_own_answers_and_share_batches(client, predictors, monkeypatch):
    images = np.random.default_rng(1).integers(0, 256, (24, 12, 12), dtype=np.uint8)
    expected = predictors["grey"]({"image": images})["probability"]

    def ask(image):
        return client.post("/predict", content=png(image)).json()["probability"]

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, images))
    np.testing.assert_allclose(answers, expected, atol=2e-6)
    metrics = client.get("/metrics").text
    count, total = (
        float(re.search(rf'^tigranet_batch_images_{kind}{{model="grey"}} (.+)$', metrics, re.MULTILINE)[1])
        for kind in ("count", "sum")
    )
    assert total == 24
    assert count <= 24


HUGE = {"name": "image", "shape": [1, 2**31, 2**31], "datatype": "FP64", "data": [1.0]}
TWO_CHANNELS = {"name": "image", "shape": [1, 1, 1, 2], "datatype": "FP64", "data": [1.0, 1.0]}
HOSTILE = [
    ("/v2/models/grey/infer", b"", 400),
    ("/v2/models/grey/infer", b"{" * 10_000, 400),
    ("/v2/models/grey/infer", b"[" * 1_000_000, 400),
    ("/v2/models/grey/infer", b'{"inputs": [{"name": "image"}]}', 400),
    ("/v2/models/grey/infer", json.dumps({"inputs": [HUGE]}).encode(), 400),
    (
        "/v2/models/grey/infer",
        json.dumps({"inputs": [HUGE | {"shape": [1, 1, 1]}]}).replace("1.0", "NaN").encode(),
        400,
    ),
    (
        "/v2/models/grey/infer",
        json.dumps({"inputs": [HUGE | {"shape": [1, 1, 1]}]}).replace("1.0", "1e999").encode(),
        400,
    ),
    ("/v2/models/color/infer", json.dumps({"inputs": [TWO_CHANNELS]}).encode(), 400),
    ("/v2/models/grey/infer", json.dumps({"inputs": [HUGE | {"shape": [1, 1, 1, 1, 1]}]}).encode(), 400),
    ("/v2/models/grey/infer", b'{"id": ' + b"9" * 100_000 + b', "inputs": []}', 400),
    ("/v2/models/grey/infer", b'{"inputs": [{"name": "\\ud800"}]}', 400),  # half of a character
    ("/v2/models/grey/infer", b'{"inputs": 1, "inputs": []}', 400),
    ("/v2/models/nosuch/infer", b"{}", 404),
    ("/v2/models/%ff%00/infer", b"{}", 404),
    ("/predict?model=%ff%00", b"", 404),
    ("/v2/models/grey/versions/1/infer", b"{}", 404),
    ("/v2/models/%2e%2e%2fgrey/infer", b"{}", 404),
    ("/v2/models/grey", b"{}", 405),
    ("/predict", b"", 400),
    ("/predict", b"no image", 400),
    ("/predict", png(np.random.default_rng(0).integers(0, 256, (20, 20), dtype=np.uint8))[:200], 400),
    ("/predict", png_that_declares(60_000, 60_000), 400),
    ("/predict", png_that_declares(10_000, 10_000), 400),
    ("/predict", png_that_declares(9, 9, part(b"zTXt", b"k\0\0" + zeros_deflated(100_000_000))), 400),
    ("/predict", png_that_declares(9, 9, part(b"iCCP", b"k\0\0" + zeros_deflated(100_000_000))), 400),
    ("/predict", gzip.compress(png(np.zeros((20, 20), np.uint8))), 400),
    ("/predict?model=nosuch", b"", 404),
    ("/predict", bytes(300_000), 413),
    ("/predict", b"GIF89a" + b"\xff" * 1000, 400),
    ("/explain", b"", 400),
    ("/explain", b"no image", 400),
    ("/explain", png_that_declares(10_000, 10_000), 400),
    ("/explain?class=nosuch", png(np.zeros((20, 20), np.uint8)), 400),
    ("/explain?model=nosuch", b"", 404),
    ("/explain", bytes(300_000), 413),
    ("/preview", b"no image", 400),
    ("/preview", png_that_declares(10_000, 10_000), 400),
    ("/preview", bytes(300_000), 413),
    ("/predict", b"II*\0" + b"\xff" * 1000, 400),
    ("/nothing", b"", 404),
]


def test_hostile_requests_are_refused_with_a_reason_and_the_server_goes_on(client_of, pixels, caplog):
    client = client_of(limits={"body_bytes": 200_000, "pixels": 1_000_000})
    caplog.set_level("INFO", LOGGER)
    good = client.post("/predict", content=png(pixels[0])).json()
    for path, body, status in HOSTILE:
        content = body if len(body) <= 200_000 or status == 413 else body[:200_000]
        response = client.post(path, content=content)
        assert response.status_code == status, (path, body[:40], response.text)
        assert 0 < len(response.json()["error"]) < 500
        assert not any(word in response.text for word in ("Traceback", "sys."))
        assert client.post("/predict", content=png(pixels[0])).json() == good
    assert {record.levelname for record in caplog.records if record.name == LOGGER} == {"INFO"}
    assert "no image" not in caplog.text  # what was sent


def test_one_unusable_image_is_named_by_its_position(client, pixels):
    data = [base64.b64encode(content).decode() for content in (png(pixels[0]), b"no image")]
    request = {"inputs": [{"name": "image", "shape": [2], "datatype": "BYTES", "data": data}]}
    response = client.post("/v2/models/grey/infer", json=request)
    assert response.status_code == 400
    assert response.json()["error"].startswith("image 1 of 2:")


def test_an_answer_that_is_not_finite_is_an_error_of_its_request_only(client, predictors, monkeypatch):
    compute = predictors["grey"].compute

    def rows_with_nan(images):
        rows = compute(images)
        bright = torch.tensor([bool(image.min() > 0.9) for image in images])
        return rows.masked_fill(bright[:, None], torch.nan)

    for batcher in client.app.app.routes[5].endpoint.__self__._batchers.values():
        monkeypatch.setattr(batcher, "_compute", rows_with_nan)
    images = [np.full((12, 12), value, np.uint8) for value in (255, 0) * 4]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda image: client.post("/predict", content=png(image)).status_code, images))
    assert answers == [422, 200] * 4


@pytest.mark.parametrize("model", ["grey", "color"])
def test_explanations_are_those_of_the_predictor(client, predictors, model, pixels):
    content = png(pixels[0])
    expected = predictors[model].explain(content, "b")
    answer = client.post("/explain", params={"model": model, "class": "b"}, content=content).json()
    assert answer["explained_class"] == "b"
    np.testing.assert_allclose(answer["evidence"], expected.evidence.numpy(), atol=1e-7)
    assert answer["score"] == pytest.approx(expected.score, abs=1e-6)
    assert sum(map(sum, answer["evidence"])) + answer["constant"] == pytest.approx(answer["score"], abs=1e-5)
    prediction = client.post("/predict", params={"model": model}, content=content).json()
    assert answer["label"] == prediction["label"]
    assert answer["probabilities"] == pytest.approx(prediction["probabilities"], abs=1e-5)
    assert list(answer["probabilities"]) == ["a", "b", "ç"]


def test_an_explanation_that_is_not_finite_is_refused(client, predictors, pixels, monkeypatch):
    explain = predictors["grey"].explain_prepared

    def explain_to_infinity(image, explained_class):
        explanation = explain(image, explained_class)
        return replace(explanation, probabilities=explanation.probabilities * torch.nan)

    monkeypatch.setattr(predictors["grey"], "explain_prepared", explain_to_infinity)
    assert client.post("/explain", content=png(pixels[0])).status_code == 422


def test_previews_are_png_files(client, pixels):
    response = client.post("/preview", content=png(pixels[0]))
    assert response.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(response.content)) as image:
        np.testing.assert_array_equal(np.asarray(image), pixels[0])


def test_an_error_of_the_network_is_an_internal_error_and_the_server_goes_on(client, monkeypatch, pixels):
    batchers = client.app.app.routes[5].endpoint.__self__._batchers
    with monkeypatch.context() as patch:
        patch.setattr(batchers["grey"], "_compute", lambda images: 1 / 0)
        response = client.post("/predict", content=png(pixels[0]))
        assert response.status_code == 500
        assert "ZeroDivisionError" not in response.text
    assert client.post("/predict", content=png(pixels[0])).status_code == 200


def test_the_page_and_its_folder_are_served_and_nothing_outside(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert client.get("/static/index.html").text == page.text
    for path in ("/static/../application.py", "/static/%2e%2e/application.py", "/static//etc/passwd", "/static/"):
        assert client.get(path).status_code == 404


def test_the_files_of_the_page_are_scripts_and_styles_of_this_server_only(client):
    files = sorted(path.name for path in STATIC_FOLDER.iterdir())
    assert {name.rpartition(".")[2] for name in files} == {"css", "html", "js", "svg"}
    for name in files:
        response = client.get(f"/static/{name}")
        assert response.headers["x-content-type-options"] == "nosniff"
        if name.endswith(".js"):
            assert response.headers["content-type"].startswith("text/javascript")
            assert len(response.text.splitlines()) < 250
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", response.text)
    page = client.get("/")
    assert not re.findall(r"<style|\sstyle=|\son[a-z]+=|<script(?! type=\"module\" src=)", page.text)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["referrer-policy"] == "no-referrer"


def test_uploads_are_not_written_to_disk(client, pixels, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nosuch"))  # every temporary file would be an error
    large = np.random.default_rng(0).integers(0, 256, (1200, 1200, 3), dtype=np.uint8)
    content = png(large)
    assert len(content) > 2**22
    for path in ("/predict", "/explain", "/preview"):
        assert client.post(path, content=content).status_code == 200
