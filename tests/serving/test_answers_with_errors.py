"""With ``on_error="column"``, good images have the answers that they have alone, and bad ones a reason."""

import pickle

import numpy as np
import pytest

from bulk_sources import BAD, contents, save_model
from tigranet.serving import Predictor

COUNT = 6


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "m")


@pytest.mark.parametrize("batch_size", [2, 64])
def test_bad_images_do_not_change_the_others(model, batch_size):
    files = [*contents(COUNT).values(), None]
    predict = pickle.loads(pickle.dumps(Predictor(model, device="cpu", on_error="column", batch_size=batch_size)))
    answer = predict({"image": files, "number": list(range(COUNT + 1))})
    assert answer["number"] == list(range(COUNT + 1))
    good = [number for number in range(COUNT) if number != BAD]
    expected = Predictor(model, device="cpu")({"image": [files[number] for number in good]})
    assert answer["label"][good].tolist() == expected["label"].tolist()
    np.testing.assert_allclose(answer["probabilities"][good], expected["probabilities"], atol=1e-6)
    assert [number for number, error in enumerate(answer["error"]) if error is not None] == [BAD, COUNT]
    assert answer["label"][BAD] is None
    assert np.isnan(answer["probability"][[BAD, COUNT]]).all()
    assert not answer["unknown"][[BAD, COUNT]].any()


def test_one_image_and_no_image(model):
    predict = Predictor(model, device="cpu", on_error="column")
    assert predict({"image": b"text"})["label"] is None
    assert predict({"image": []})["error"].shape == (0,)


def test_other_values_are_refused(model, without_shape_checks):
    with pytest.raises(ValueError, match="'skip'"):
        Predictor(model, on_error="skip")
