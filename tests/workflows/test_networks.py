import pytest
import torch

from tigranet import TIGraNet
from tigranet.workflows.networks import is_architecture, load_network


def test_a_folder_is_a_saved_network_even_if_it_is_called_like_a_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_architecture("paper")
    TIGraNet("SC[2,2]-S[2]", 3).save_pretrained("paper")
    assert not is_architecture("paper")
    assert str(load_network("paper").architecture) == "SC[2,2]-S[2]"


def test_a_new_network_is_calibrated_on_training_images(small):
    torch.manual_seed(0)
    new = load_network("SC[2,2]-S[2]", small)
    torch.manual_seed(0)
    raw = TIGraNet("SC[2,2]-S[2]", 3)
    assert new.num_classes == 3
    assert all(torch.equal(*pair) for pair in zip(new.parameters(), raw.parameters(), strict=True))
    state, raw_state = new.state_dict(), raw.state_dict()
    changed = {name for name in state if not torch.equal(state[name], raw_state[name])}
    assert changed
    assert all(name.startswith("standardise.") for name in changed)


def test_without_data_a_network_has_nine_classes():
    assert load_network("SC[2,2]-S[2]").num_classes == 9


def test_other_channels_are_refused(small, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 3, in_maps=3).save_pretrained(tmp_path / "m")
    with pytest.raises(ValueError, match=r"3 channels.*small.* 1\b"):
        load_network(tmp_path / "m", small)
