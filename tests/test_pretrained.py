import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from huggingface_hub.errors import LocalEntryNotFoundError

from tigranet import TIGraNet
from tigranet.pretrained import SHIPPED, shipped

IMAGES = torch.linspace(0, 1, 2 * 28 * 28).reshape(2, 1, 28, 28)


@pytest.fixture
def saved(trained, tmp_path) -> Path:
    trained.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_what_is_saved_is_what_is_loaded(trained, saved):
    net = TIGraNet.from_pretrained(saved)
    assert torch.equal(net(IMAGES), trained(IMAGES))
    assert net.config == trained.config
    assert not net.training
    assert sorted(file.name for file in saved.iterdir()) == ["README.md", "config.json", "model.safetensors"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"boundary": "torus", "in_maps": 3},
        {"init": "paper", "ties": "strict"},
        {"neighbours": 4, "span": 1.5, "class_names": ["a", "b", "c", "d"], "image_size": 6},
    ],
)
def test_every_argument_comes_back(arguments, tmp_path):
    net = TIGraNet("SC[2,2]-DP[9]-S[2]", num_classes=4, **arguments).eval()
    net.save_pretrained(tmp_path)
    loaded = TIGraNet.from_pretrained(str(tmp_path))
    assert loaded.config == net.config
    images = torch.rand(2, net.in_maps, 6, 6)
    assert torch.equal(loaded(images), net(images))


def test_float64_weights_stay_float64(tmp_path):
    net = TIGraNet("SC[2,2]-S[2]", num_classes=2).double()
    net.save_pretrained(tmp_path)
    assert TIGraNet.from_pretrained(tmp_path).graph_layers[0].alpha.dtype == torch.float64


def test_a_loaded_network_can_go_on_training(saved):
    net = TIGraNet.from_pretrained(saved).train()
    net(IMAGES).sum().backward()
    assert net.graph_layers[0].alpha.grad is not None


def test_nothing_is_printed(saved, capfd):
    TIGraNet.from_pretrained(saved)
    assert capfd.readouterr() == ("", "")


def test_weights_are_readable_by_whoever_may_read_the_configuration(saved):
    assert (saved / "model.safetensors").stat().st_mode == (saved / "config.json").stat().st_mode


def test_saving_over_a_model_keeps_a_card_that_somebody_wrote(saved, trained):
    (saved / "README.md").write_text("mine")
    trained.save_pretrained(saved)
    assert (saved / "README.md").read_text() == "mine"


def test_a_failure_while_saving_leaves_the_old_model(saved, trained, monkeypatch):
    before = {file.name: file.read_bytes() for file in saved.iterdir()}

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(OSError, match="No space left"):
        TIGraNet("paper", num_classes=9).save_pretrained(saved)
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before


def test_a_failure_while_saving_leaves_no_new_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(safetensors.torch, "save_file", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        TIGraNet("paper-small", num_classes=3).save_pretrained(tmp_path / "new" / "model")
    assert not (tmp_path / "new" / "model").exists()
    assert list((tmp_path / "new").iterdir()) == []


def test_weights_beside_another_configuration_are_refused(saved):
    """As after a crash between the two moves: the shapes fit, but the network would be another one."""
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(config | {"boundary": "torus"}))
    with pytest.raises(ValueError, match=r"is not the configuration that model\.safetensors was saved with"):
        TIGraNet.from_pretrained(saved)


def test_how_the_configuration_is_laid_out_does_not_matter(saved, trained):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(dict(reversed(config.items()))))
    assert torch.equal(TIGraNet.from_pretrained(saved)(IMAGES), trained(IMAGES))


def test_a_folder_may_be_a_link_and_end_in_a_slash(trained, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    trained.save_pretrained(tmp_path / "link")
    assert torch.equal(TIGraNet.from_pretrained(f"{tmp_path}/link/")(IMAGES), trained(IMAGES))


def test_a_model_comes_from_the_hub(saved, trained, monkeypatch):
    for module in ("huggingface_hub.hub_mixin", "tigranet.pretrained"):
        monkeypatch.setattr(f"{module}.hf_hub_download", lambda repo_id, filename, **_: str(saved / filename))
    assert torch.equal(TIGraNet.from_pretrained("somebody/digits")(IMAGES), trained(IMAGES))


def test_a_model_that_is_not_on_the_hub_is_one_line(monkeypatch):
    def offline(*_, **__):
        raise LocalEntryNotFoundError("cannot reach the Hub\nand much more")

    monkeypatch.setattr("huggingface_hub.hub_mixin.hf_hub_download", offline)
    with pytest.raises(
        FileNotFoundError, match=r"is neither a folder nor a model found on the Hub: cannot reach the Hub$"
    ):
        TIGraNet.from_pretrained("somebody/digits")


def test_a_file_is_not_overwritten(tmp_path):
    file = tmp_path / "model"
    file.write_text("precious")
    with pytest.raises(NotADirectoryError, match="a model is saved to a folder, got the file"):
        TIGraNet("paper-small", num_classes=3).save_pretrained(file)
    assert file.read_text() == "precious"


def test_no_pickle_is_ever_read(tmp_path):
    TIGraNet("SC[1,1]-S[1]", num_classes=2).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"has no model\.safetensors"):
        TIGraNet.from_pretrained(tmp_path)


def test_a_card_that_was_written_with_a_model_is_written_again(saved, trained):
    trained.save_pretrained(saved, model_card_kwargs={"about": "It has seen 3 images."})
    assert "It has seen 3 images." in (saved / "README.md").read_text()
    trained.save_pretrained(saved)
    assert "3 images" not in (saved / "README.md").read_text()


def test_what_comes_with_the_package_is_loaded_by_name(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("tigranet.pretrained.SHIPPED", saved.parent)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert shipped() == [saved.name]
    assert isinstance(TIGraNet.from_pretrained(saved.name), TIGraNet)
    with pytest.raises(FileNotFoundError, match=f"none at 'another'; these come with tigranet: {saved.name}"):
        TIGraNet.from_pretrained("another")


@pytest.mark.parametrize("name", shipped())
def test_each_network_that_comes_with_the_package_says_what_it_is(name):
    net = TIGraNet.from_pretrained(name)
    size = net.image_size
    with torch.no_grad():
        assert net(torch.rand(2, net.in_maps, size, size)).shape == (2, net.num_classes)
    assert "## What it does" in (SHIPPED / name / "README.md").read_text()
