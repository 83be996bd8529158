import json
import os
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


def test_loading_does_not_import_the_compiler(torch_process):
    """It would take a second: PyTorch imports it to draw the weights of a network that has no memory yet."""
    code = """
import sys
from tigranet import TIGraNet
before = "torch._dynamo" in sys.modules
TIGraNet.from_pretrained("pyramid-cifar10")
assert not before and "torch._dynamo" not in sys.modules
"""
    process = torch_process.run(code)
    assert process.returncode == 0, process.stderr


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


SMALL = "SC[2,2]-S[2]"
WIDE = "-".join(["MC[10000,1000]"] * 4)
WRONG_CONFIGURATIONS = {
    "100 million classes": ({"num_classes": 10**8}, ["num_classes", "100,000,000"]),
    "a number of classes of many digits": ({"num_classes": 10**4000}, ["num_classes"]),
    "true for a number": ({"num_classes": True}, ["num_classes", "True"]),
    "a fraction of a class": ({"num_classes": 2.0}, ["num_classes", "2.0"]),
    "text for a number": ({"num_classes": "2"}, ["num_classes", "'2'"]),
    "null for a number": ({"num_classes": None}, ["num_classes", "None"]),
    "nested lists for a number": ({"num_classes": [[[2]]]}, ["num_classes"]),
    "10 MB of text for a number": ({"num_classes": "2" * 10**7}, ["num_classes"]),
    "a thousand million channels": ({"in_maps": 10**9}, ["in_maps", "1,000,000,000"]),
    "no channels": ({"in_maps": 0}, ["in_maps", "0"]),
    "100,000 layers": ({"architecture": "-".join(["SC[2,2]"] * 100_000 + ["S[2]"])}, ["characters"]),
    "1,001 layers": ({"architecture": "-".join(["SC[2,2]"] * 1000 + ["S[2]"])}, ["1,000 layers", "1,001"]),
    "10 MB of text for the layers": ({"architecture": "S" * 10**7}, ["characters", "10,000,000"]),
    "a list of layers": ({"architecture": ["SC[2,2]", "S[2]"]}, ["architecture"]),
    "a number of many digits": ({"architecture": f"SC[2,{'9' * 9000}]-S[2]"}, ["degree of SC", "layer 1"]),
    "too many parameters": ({"architecture": f"{WIDE}-S[2]"}, ["parameters", "MC[10000,1000]"]),
    "a wide layer": ({"architecture": "SC[10000,1000]-S[1000]"}, ["model.safetensors", "alpha"]),
    "many smoothings": ({"architecture": "MC[2,2]-OP[2,99999]-S[2]"}, ["smoothings of OP", "100"]),
    "NaN": ({"span": float("nan")}, ["not JSON", "NaN"]),
    "an infinite number": ({"diagonal": float("inf")}, ["not JSON", "Infinity"]),
    "text for a fraction": ({"diagonal": "1"}, ["diagonal", "'1'"]),
    "an integer beyond floating point": ({"diagonal": 10**400}, ["diagonal"]),
    "a list for a choice": ({"boundary": ["free"]}, ["boundary", "['free']"]),
    "10 MB of text for a choice": ({"ties": "x" * 10**7}, ["ties", "xxx"]),
    "a fraction of neighbours": ({"neighbours": 8.5}, ["neighbours", "8.5"]),
    "an image of many pixels": ({"image_size": 10**9}, ["image_size", "1,000,000,000"]),
    "text for an image size": ({"image_size": "28"}, ["image_size", "'28'"]),
    "numbers for class names": ({"class_names": [1, 2]}, ["class_names", "1", "position 0"]),
    "text for class names": ({"class_names": "ab"}, ["class_names", "'ab'"]),
    "an object for class names": ({"class_names": {"a": 1, "b": 2}}, ["class_names"]),
    "a class name too many": ({"class_names": ["a", "b", "c"]}, ["3 names", "2 classes"]),
    "a class name twice": ({"class_names": ["a", "a"]}, ["'a'", "2 times"]),
    "a million class names": ({"class_names": ["a"] * 10**6}, ["not JSON", "values"]),
    "an unknown argument": ({"x" * 10**6: 1}, ["unknown", "xxx"]),
}
WRONG_FILES = {
    "an empty file": (b"", ["not JSON"]),
    "more than 16 MB": (b" " * 16_000_001, ["too large"]),
    "a list": (b"[1, 2]", ["JSON object", "list"]),
    "not UTF-8": (b'{"a": "\xff"}', ["not JSON", "0xff"]),
    "an argument twice": (b'{"num_classes": 2, "num_classes": 3}', ["'num_classes'", "more than once"]),
    "deep nesting": (b'{"a":' * 100_000, ["nested too deeply"]),
    "5 million lists": (b'{"a": [' + b"[]," * 5_000_000 + b"1]}", ["values"]),
}
LOAD_ALL = """
import json, sys, time
from pathlib import Path
from tigranet import TIGraNet

def peak():
    # ru_maxrss would include the process that starts this one
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024  # in MiB, on Linux

TIGraNet("SC[2,2]-S[2]", 2)
before = peak()
results = {}
for folder in Path(sys.argv[1]).iterdir():
    start = time.process_time()
    try:
        message = repr(TIGraNet.from_pretrained(folder))
    except ValueError as error:
        message = str(error)
    results[folder.name] = message, time.process_time() - start
print(json.dumps([results, peak() - before]))
"""


def test_a_hostile_configuration_is_refused_within_a_second_and_200_mb(tmp_path, warm_process):
    """Each folder has the weights of a small network without a checksum, so that only the configuration is wrong."""
    small = TIGraNet(SMALL, 2)
    state = {name: tensor.contiguous() for name, tensor in small.state_dict().items()}
    cases = {name: words for name, (_, words) in (WRONG_CONFIGURATIONS | WRONG_FILES).items()}
    for name in cases:
        (tmp_path / name).mkdir()
        safetensors.torch.save_file(state, tmp_path / name / "model.safetensors")
        if name in WRONG_FILES:
            content = WRONG_FILES[name][0]
        else:
            content = json.dumps({"architecture": SMALL, "num_classes": 2} | WRONG_CONFIGURATIONS[name][0]).encode()
        (tmp_path / name / "config.json").write_bytes(content)
    process = warm_process.run(LOAD_ALL, tmp_path)
    assert process.returncode == 0, process.stderr
    results, megabytes = json.loads(process.stdout)
    assert results.keys() == cases.keys()
    for name, (message, seconds) in results.items():
        assert f"{name}/" in message, (name, message)
        assert all(word in message for word in cases[name]), (name, message)
        assert "\n" not in message
        assert len(message) < 3000, name
        assert seconds < 1, (name, seconds)
    assert megabytes < 200


@pytest.mark.parametrize(
    "names", [["a\x00b", "\x1b[31m"], ["=1+1", "new\nline"], ["caf\udce9", ""], ["'", '"']], ids=range(4)
)
def test_control_characters_in_class_names_are_data(names, tmp_path):
    TIGraNet(SMALL, 2, class_names=names).save_pretrained(tmp_path)
    assert TIGraNet.from_pretrained(tmp_path).class_names == tuple(names)


def test_the_largest_number_of_class_names_is_saved_and_loaded(tmp_path):
    names = [f"class number {position:,}, with commas" for position in range(100_000)]
    TIGraNet("SC[1,1]-S[0]", 100_000, class_names=names).save_pretrained(tmp_path)
    assert TIGraNet.from_pretrained(tmp_path).class_names[-1] == names[-1]


def test_a_configuration_that_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="class names"):
        TIGraNet(SMALL, 2, class_names=["a", "b" * 20_000_000]).save_pretrained(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["graph_layers.0.alpha", "standardise.variance", "classifier.0.bias"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_and_buffers_that_are_not_finite_are_refused_by_name(name, value, tmp_path):
    net = TIGraNet(SMALL, 2)
    with torch.no_grad():
        net.state_dict()[name].flatten()[-1] = value
    net.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=rf"model\.safetensors'.*NaN or infinity in '{name}'"):
        TIGraNet.from_pretrained(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_network_in_another_precision_is_loaded_in_it(dtype, tmp_path):
    TIGraNet(SMALL, 2).to(dtype).save_pretrained(tmp_path)
    assert {parameter.dtype for parameter in TIGraNet.from_pretrained(tmp_path).parameters()} == {dtype}


def test_weights_in_two_precisions_are_refused(tmp_path):
    net = TIGraNet(SMALL, 2)
    net.classifier.double()
    net.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"classifier\.0\.weight.*F64"):
        TIGraNet.from_pretrained(tmp_path)


def test_arguments_replace_those_of_the_configuration(model_folder):
    net = TIGraNet.from_pretrained(model_folder, boundary="torus", class_names=["x", "y", "z"])
    assert (net.boundary, net.class_names) == ("torus", ("x", "y", "z"))
    with pytest.raises(ValueError, match=r"does not fit"):
        TIGraNet.from_pretrained(model_folder, in_maps=2)


def test_another_number_of_classes_gives_a_new_last_layer(model_folder, trained):
    images = torch.rand(3, 1, 12, 12)
    torch.manual_seed(1)
    net = TIGraNet.from_pretrained(model_folder, num_classes=5)
    assert net(images).shape == (3, 5)
    assert not net.training
    assert torch.equal(net.features(images), trained.features(images))
    assert torch.equal(net.standardise.mean, trained.standardise.mean)
    same = TIGraNet.from_pretrained(model_folder, num_classes=trained.num_classes)
    assert torch.equal(same(images), trained(images))
    for wrong in (0, -1, 10**9):
        with pytest.raises(ValueError, match="num_classes"):
            TIGraNet.from_pretrained(model_folder, num_classes=wrong)


def test_loading_leaves_the_random_numbers_alone(model_folder):
    state = torch.get_rng_state()
    TIGraNet.from_pretrained(model_folder)
    assert torch.equal(torch.get_rng_state(), state)


class WithTable(TIGraNet):
    """A network with a buffer that is computed, and not saved."""

    def __init__(self):
        super().__init__("SC[2,2]-S[2]", 2)
        self.register_buffer("table", torch.arange(3), persistent=False)


def test_buffers_that_are_not_saved_are_computed(tmp_path):
    net = WithTable()
    net.config = {}
    net.save_pretrained(tmp_path)
    loaded = WithTable.from_pretrained(tmp_path)
    assert loaded.table.tolist() == [0, 1, 2]
    assert torch.equal(loaded.classifier[0].weight, net.classifier[0].weight)


def test_saving_follows_links_and_keeps_permissions(trained, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "model").mkdir()
    target = tmp_path / "elsewhere" / "weights"
    target.write_text("old")
    target.chmod(0o640)
    (tmp_path / "model" / "model.safetensors").symlink_to(target)
    (tmp_path / "model" / "README.md").write_bytes(b"written by the user \xff")
    trained.save_pretrained(tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert torch.equal(TIGraNet.from_pretrained(tmp_path / "model")(IMAGES), trained(IMAGES))
    assert (tmp_path / "model" / "README.md").read_bytes() == b"written by the user \xff"


def test_a_named_pipe_in_place_of_a_file_is_refused_without_waiting(model_folder):
    (model_folder / "config.json").unlink()
    os.mkfifo(model_folder / "config.json")
    with pytest.raises(FileNotFoundError, match=r"no config\.json"):
        TIGraNet.from_pretrained(model_folder)
