import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from huggingface_hub.errors import LocalEntryNotFoundError

from tigranet import TIGraNet
from tigranet.pretrained import OLD_GENERATED_CARD_MARK, SHIPPED_FOLDER, shipped

IMAGES = torch.linspace(0, 1, 2 * 28 * 28).reshape(2, 1, 28, 28)


@pytest.fixture
def model_folder(trained, tmp_path) -> Path:
    trained.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_loaded_network_equals_the_saved_network(trained, model_folder):
    net = TIGraNet.from_pretrained(model_folder)
    assert torch.equal(net(IMAGES), trained(IMAGES))
    assert net.config == trained.config
    assert not net.training
    assert sorted(file.name for file in model_folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"boundary": "torus", "in_maps": 3},
        {"init": "paper", "ties": "strict"},
        {"neighbours": 4, "span": 1.5, "class_names": ["a", "b", "c", "d"], "image_size": 6},
    ],
)
def test_every_argument_is_restored(arguments, tmp_path):
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


def test_a_loaded_network_can_be_trained_further(model_folder):
    net = TIGraNet.from_pretrained(model_folder).train()
    net(IMAGES).sum().backward()
    assert net.graph_layers[0].alpha.grad is not None


def test_loading_prints_nothing(model_folder, capfd):
    TIGraNet.from_pretrained(model_folder)
    assert capfd.readouterr() == ("", "")


def test_the_weights_have_the_file_permissions_of_the_configuration(model_folder):
    assert (model_folder / "model.safetensors").stat().st_mode == (model_folder / "config.json").stat().st_mode


def test_saving_keeps_a_model_card_written_by_the_user(model_folder, trained):
    (model_folder / "README.md").write_text("mine")
    trained.save_pretrained(model_folder)
    assert (model_folder / "README.md").read_text() == "mine"


def test_a_failure_while_saving_keeps_the_old_model(model_folder, monkeypatch):
    old_files = {file.name: file.read_bytes() for file in model_folder.iterdir()}

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", fail)
    with pytest.raises(OSError, match="No space left"):
        TIGraNet("paper", num_classes=9).save_pretrained(model_folder)
    assert {file.name: file.read_bytes() for file in model_folder.iterdir()} == old_files


def test_a_failure_while_saving_leaves_no_new_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(safetensors.torch, "save_file", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        TIGraNet("paper-small", num_classes=3).save_pretrained(tmp_path / "new" / "model")
    assert not (tmp_path / "new" / "model").exists()
    assert list((tmp_path / "new").iterdir()) == []


def test_weights_with_another_configuration_are_rejected(model_folder):
    """This happens after a crash while saving. All shapes fit, but the network would give other logits."""
    config = json.loads((model_folder / "config.json").read_text())
    (model_folder / "config.json").write_text(json.dumps(config | {"boundary": "torus"}))
    with pytest.raises(ValueError, match=r"config\.json.*model\.safetensors.*save the model again"):
        TIGraNet.from_pretrained(model_folder)


def test_the_order_and_layout_of_the_configuration_do_not_matter(model_folder, trained):
    config = json.loads((model_folder / "config.json").read_text())
    (model_folder / "config.json").write_text(json.dumps(dict(reversed(config.items()))))
    assert torch.equal(TIGraNet.from_pretrained(model_folder)(IMAGES), trained(IMAGES))


def test_a_folder_may_be_a_symbolic_link_and_end_with_a_slash(trained, tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    trained.save_pretrained(tmp_path / "link")
    assert torch.equal(TIGraNet.from_pretrained(f"{tmp_path}/link/")(IMAGES), trained(IMAGES))


def test_a_model_is_loaded_from_the_hub(model_folder, trained, monkeypatch):
    options = []

    def download(repo_id, filename, **given):
        options.append(given)
        return str(model_folder / filename)

    monkeypatch.setattr("tigranet.pretrained.hf_hub_download", download)
    net = TIGraNet.from_pretrained("somebody/digits", revision="v2", token=False, map_location="cpu")
    assert torch.equal(net(IMAGES), trained(IMAGES))
    assert options == [{"revision": "v2", "token": False}] * 2


def test_an_unavailable_hub_gives_an_error_of_one_line(monkeypatch):
    def offline(*_, **__):
        raise LocalEntryNotFoundError("cannot reach the Hub\nand much more")

    monkeypatch.setattr("tigranet.pretrained.hf_hub_download", offline)
    with pytest.raises(FileNotFoundError, match=r"'somebody/digits'.*Hub: cannot reach the Hub$"):
        TIGraNet.from_pretrained("somebody/digits")


def test_saving_does_not_overwrite_a_file(tmp_path):
    file = tmp_path / "model"
    file.write_text("precious")
    with pytest.raises(NotADirectoryError, match=f"folder.*file '{file}'"):
        TIGraNet("paper-small", num_classes=3).save_pretrained(file)
    assert file.read_text() == "precious"


def test_pickle_files_are_never_read(tmp_path):
    TIGraNet("SC[1,1]-S[1]", num_classes=2).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"has no model\.safetensors"):
        TIGraNet.from_pretrained(tmp_path)


def test_a_generated_model_card_is_replaced(model_folder, trained):
    trained.save_pretrained(model_folder, model_card_kwargs={"about": "Trained on 3 images."})
    assert "Trained on 3 images." in (model_folder / "README.md").read_text()
    trained.save_pretrained(model_folder)
    assert "3 images" not in (model_folder / "README.md").read_text()


def test_a_model_card_generated_by_an_earlier_version_is_replaced(model_folder, trained):
    (model_folder / "README.md").write_text(f"An old card.\n{OLD_GENERATED_CARD_MARK} The rest of the line. -->\n")
    trained.save_pretrained(model_folder)
    assert "An old card." not in (model_folder / "README.md").read_text()


def test_a_shipped_network_is_loaded_by_name(model_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tigranet.pretrained.SHIPPED_FOLDER", model_folder.parent)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert shipped() == [model_folder.name]
    assert isinstance(TIGraNet.from_pretrained(model_folder.name), TIGraNet)
    with pytest.raises(FileNotFoundError, match=rf"'another'.*config\.json.*: {model_folder.name}$"):
        TIGraNet.from_pretrained("another")


@pytest.mark.parametrize("name", shipped())
def test_each_shipped_network_works_at_its_image_size_and_has_a_model_card(name):
    net = TIGraNet.from_pretrained(name)
    size = net.image_size
    with torch.no_grad():
        assert net(torch.rand(2, net.in_maps, size, size)).shape == (2, net.num_classes)
    assert "## What it does" in (SHIPPED_FOLDER / name / "README.md").read_text()
