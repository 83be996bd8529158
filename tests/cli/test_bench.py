import json

import pytest


@pytest.fixture(autouse=True)
def _few_calls(monkeypatch):
    """The times themselves are not tested."""
    monkeypatch.setattr("tigranet.evaluation.speed.SINGLE_IMAGE_CALLS", 1)


@pytest.mark.parametrize("model", ["paper-small", "MC[2,2]-OP[1]-S[2]", "paper-mnist-rot"])
def test_a_preset_layers_or_a_saved_network_is_timed(tigranet, model):
    code, out, err = tigranet("bench", model, "--size", "9", "--batch", "2", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert result["size"] == 9
    assert result["architecture"].startswith(("SC", "MC"))
    assert [row["work"] for row in result["milliseconds"]] == ["one image", "2 images", "training step of 2"]


def test_the_table_has_a_row_for_each_kind_of_work(tigranet):
    code, out, err = tigranet("bench", "SC[2,2]-S[2]", "--size", "9", "--batch", "2", "--device", "cpu")
    assert code == 0, err
    for words in ("SC[2,2]-S[2]", "9 x 9 pixels", "threads", "fused", "plain", "one image", "training step of 2"):
        assert words in out
