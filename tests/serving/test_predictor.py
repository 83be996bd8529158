import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from tigranet import TIGraNet
from tigranet.evaluation.file_predictions import MAX_PLAIN_PIXELS
from tigranet.ops.mode import kernel_mode
from tigranet.serving import Predictor
from tigranet.workflows.predict import predict


@pytest.mark.parametrize("name", ["grey", "color"])
def test_the_answers_are_those_of_predict(predictors, name, pixels, tmp_path):
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for path, image in zip(paths, pixels, strict=True):
        Image.fromarray(image).save(path)
    expected = predict(predictors[name].model, paths, device="cpu").predictions
    for images in (pixels, list(pixels), [path.read_bytes() for path in paths]):
        answer = predictors[name]({"image": images})
        assert answer["label"].tolist() == [row.label for row in expected]
        assert answer["probability"] == pytest.approx([row.probability for row in expected], abs=1e-6)


def test_probabilities_sum_to_one_and_do_not_depend_on_the_batch(grey_model, pixels):
    whole, single = Predictor(grey_model, device="cpu"), Predictor(grey_model, device="cpu", batch_size=1)
    answer = whole({"image": pixels})
    np.testing.assert_allclose(answer["probabilities"].sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(single({"image": pixels})["probabilities"], answer["probabilities"], atol=1e-6)
    np.testing.assert_array_equal(answer["probabilities"].max(1), answer["probability"])


def test_quarter_turns_do_not_change_the_answer(predictors, pixels):
    upright = predictors["grey"]({"image": pixels})
    turned = predictors["grey"]({"image": np.rot90(pixels, axes=(1, 2))})
    np.testing.assert_allclose(turned["probabilities"], upright["probabilities"], atol=1e-5)


def test_one_image_gives_scalars(predictors, pixels):
    batch = predictors["grey"]({"image": pixels})
    for image in (pixels[0], torch.from_numpy(pixels[0])):
        answer = predictors["grey"]({"image": image})
        assert answer["label"] == batch["label"][0]
        assert answer["probability"] == pytest.approx(float(batch["probability"][0]), abs=1e-6)
        assert answer["probabilities"].shape == (3,)
    assert predictors["grey"]({"image": pixels[0, :, :, 0]})["probabilities"].shape == (3,)


def test_images_of_different_sizes_and_files_may_be_in_one_object_array(predictors, pixels, tmp_path):
    Image.fromarray(pixels[2]).save(tmp_path / "image.png")
    images = np.empty(3, dtype=object)
    images[:] = [pixels[0], pixels[1][:9], (tmp_path / "image.png").read_bytes()]
    answer = predictors["color"]({"image": images, "path": ["x", "y", "z"]})
    assert answer["path"] == ["x", "y", "z"]
    assert "image" not in answer
    expected = predictors["color"]({"image": pixels[[0, 2]]})["probabilities"]
    np.testing.assert_allclose(answer["probabilities"][[0, 2]], expected, atol=1e-6)


def test_an_empty_batch_has_empty_answers(predictors):
    answer = predictors["grey"]({"image": np.zeros((0, 8, 8), np.uint8)})
    assert [answer[name].shape for name in ("label", "probability", "unknown")] == [(0,), (0,), (0,)]
    assert answer["probabilities"].shape == (0, 3)


def test_a_pickle_is_small_and_loads_the_network_when_it_is_needed(grey_model, pixels, monkeypatch):
    monkeypatch.chdir(grey_model.parent)
    predictor = Predictor(grey_model.name, device="cpu", reject=0.2)
    answer = predictor({"image": pixels})
    content = pickle.dumps(predictor)
    assert len(content) < 1000
    monkeypatch.chdir("/")
    copy = pickle.loads(content)
    assert copy._loaded is None
    np.testing.assert_array_equal(copy({"image": pixels})["probabilities"], answer["probabilities"])


def test_below_the_probability_the_label_is_unknown(grey_model, pixels):
    answer = Predictor(grey_model, device="cpu", reject=1.0)({"image": pixels})
    assert set(answer["label"]) == {"unknown"}
    assert answer["unknown"].all()


def test_wrong_images_name_their_position(predictors, pixels):
    with pytest.raises(ValueError, match="image 1 of 2 not an image"):
        predictors["grey"]({"image": [pixels[0], b"no image"]})
    with pytest.raises(ValueError, match="the image holds NaN"):
        predictors["grey"]({"image": np.full((4, 4), np.nan)})
    with pytest.raises(KeyError, match=r"'image'.*'pixels'"):
        predictors["grey"]({"pixels": pixels})


def test_wrong_arguments_are_refused(grey_model, tmp_path):
    with pytest.raises(ValueError, match=r"reject.*1\.5"):
        Predictor(grey_model, reject=1.5)
    with pytest.raises(ValueError, match=r"unknown.*'sometimes'"):
        Predictor(grey_model, unknown="sometimes")
    with pytest.raises(ValueError, match=r"unknown\.safetensors.*tigranet calibrate"):
        Predictor(grey_model, unknown=0.9).warm_up()
    with pytest.raises(ValueError, match=r"batch size.*0"):
        Predictor(grey_model, batch_size=0)
    with pytest.raises(FileNotFoundError, match="nosuch"):
        Predictor(tmp_path / "nosuch").warm_up()
    TIGraNet("SC[2,2]-S[2]", 2).save_pretrained(tmp_path / "sizeless")
    with pytest.raises(ValueError, match=r"sizeless.*image_size"):
        Predictor(tmp_path / "sizeless").warm_up()


def test_a_network_without_finite_answers_is_an_error(grey_model, pixels, monkeypatch):
    predictor = Predictor(grey_model, device="cpu")
    monkeypatch.setattr(predictor, "compute", lambda images: torch.full((len(images), 3), torch.inf))
    with pytest.raises(ValueError, match="no finite answer"):
        predictor({"image": pixels})


def test_warming_up_computes_one_image_and_a_full_batch(grey_model, monkeypatch):
    predictor = Predictor(grey_model, device="cpu", batch_size=5)
    counts = []
    compute = predictor.compute
    monkeypatch.setattr(predictor, "compute", lambda images: counts.append(len(images)) or compute(images))
    predictor.warm_up()
    assert counts == [1, 5]


def test_few_images_are_computed_in_plain_pytorch_until_the_predictor_is_warm(grey_model, pixels, monkeypatch):
    monkeypatch.setenv("TIGRANET_KERNELS", "auto")
    modes = []
    predictor = Predictor(grey_model, device="cpu")
    zeros = torch.zeros(3, 3)
    monkeypatch.setattr(predictor.network, "forward", lambda images: modes.append(kernel_mode()) or zeros)
    predictor({"image": pixels})
    monkeypatch.setattr(predictor, "_total_pixels", MAX_PLAIN_PIXELS)
    predictor({"image": pixels})
    assert modes == ["plain", "auto"]
    copy = pickle.loads(pickle.dumps(predictor))
    assert copy._total_pixels == 0
    monkeypatch.setattr(predictor, "compute", lambda images: None)
    predictor.warm_up()
    assert predictor._total_pixels is None
