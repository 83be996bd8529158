import io
import json
import shutil
import struct

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file

from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.evaluation.unknown.novelty import NoveltyDetector
from tigranet.safetensors_header import read_safetensors_header
from tigranet.workflows.unknown_detection import (
    detects_unknown,
    fit_unknown_detector,
    load_unknown_images,
    parse_unknown,
    read_unknown_detector,
    write_unknown_detector,
)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A saved network with a detector."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("fitted") / "model"
    network = TIGraNet("SC[2,2]-DP[40]-S[2]", 2, class_names=["a", "b"], image_size=12).eval()
    network.save_pretrained(folder)
    images = LabelledImages(torch.rand(30, 1, 12, 12), torch.arange(30) % 2)
    detector = fit_unknown_detector(network, images.take(list(range(20))), images.take(list(range(20, 30))))
    assert detector is not None
    write_unknown_detector(folder, network, detector)
    return folder, network, detector


@pytest.fixture
def copied(fitted, tmp_path):
    """A copy of it, for changes."""
    folder, network, _ = fitted
    return shutil.copytree(folder, tmp_path / "copy"), network


def test_it_is_read_as_it_was_written(fitted):
    folder, network, detector = fitted
    result = read_unknown_detector(folder, network)
    assert (result.known, result.contrast) == (detector.known, detector.contrast)
    stored, expected = result.detector.to_tensors(), detector.detector.to_tensors()
    assert stored.keys() == expected.keys()
    assert all(torch.equal(stored[name], expected[name]) for name in expected)
    assert (folder / "unknown.safetensors").stat().st_size < 20_000


def test_none_deletes_the_file_of_an_earlier_model(copied):
    folder, network = copied
    write_unknown_detector(folder, network, None)
    assert read_unknown_detector(folder, network) is None
    assert load_unknown_images(folder, network) is None
    with pytest.raises(ValueError, match=r"unknown\.safetensors.*tigranet calibrate"):
        load_unknown_images(folder, network, 0.9)
    write_unknown_detector(folder, network, None)


def test_a_share_is_a_choice_with_a_notice_if_it_is_approximate(fitted):
    folder, network, _ = fitted
    output = io.StringIO()
    console = Console(file=output, width=500)
    assert load_unknown_images(folder, network, "off", console) is None
    assert load_unknown_images(folder, network, "0.9", console).share == 0.9
    assert output.getvalue() == ""
    assert load_unknown_images(str(folder), network, console=console).share == 0.95
    assert output.getvalue() == ""
    assert load_unknown_images(str(folder), network, 0.95, console).share == 0.95
    assert "at least 19 validation images, it has 10" in output.getvalue()
    assert [detects_unknown(folder, choice) for choice in ("auto", "off", 0.5)] == [True, False, True]
    assert [detects_unknown("oriented-mnist-012", choice) for choice in ("auto", "off", 0.5)] == [False, False, True]


@pytest.mark.parametrize("unknown", ["", "no", "1", "0", "95", 1.5, -0.5, "nan"])
def test_other_choices_are_refused(unknown):
    with pytest.raises(ValueError, match=r"'auto', 'off'.*between 0 and 1"):
        parse_unknown(unknown)


def test_other_weights_have_no_detector(copied):
    folder, _ = copied
    changed = TIGraNet.from_pretrained(folder)
    with torch.no_grad():
        next(changed.parameters()).add_(1)
    with pytest.raises(ValueError, match=r"unknown\.safetensors.*other weights.*tigranet calibrate"):
        read_unknown_detector(folder, changed)
    wider = TIGraNet("SC[3,2]-S[2]", 2)
    with pytest.raises(ValueError, match=r"unknown\.safetensors.*mean_variances.*tigranet calibrate"):
        read_unknown_detector(folder, wider)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("scores", None, "tensors"),
        ("more", torch.zeros(1), "tensors"),
        ("scores", torch.zeros(1).double(), "scores"),
        ("scores", torch.tensor([1.0, float("nan")]).double(), "finite"),
        ("scores", torch.zeros(20_000).double(), "10,000 scores"),
        ("scores", torch.zeros(5), "F64"),
        ("contrasts", torch.zeros(2).double(), "positive"),
        ("variances", torch.zeros(3), "variances"),
        ("class_means", torch.zeros(5, 12), "2 classes"),
        ("class_means", torch.zeros(0, 12), "classes"),
        ("score_deviations", torch.tensor([1.0, 0.0, 1.0]), "positive"),
        ("score_centres", torch.tensor([1.0, float("inf"), 1.0]), "finite"),
        ("discriminants", torch.zeros(12), "discriminants"),
        ("other_variance", torch.ones(1), "other_variance"),
    ],
)
def test_wrong_numbers_are_refused_in_one_line(copied, name, change, words):
    folder, network = copied
    path = folder / "unknown.safetensors"
    metadata, tensors = read_safetensors_header(path).metadata, load_file(path)
    tensors.pop(name, None)
    save_file(tensors | ({} if change is None else {name: change}), path, metadata)
    refuse(folder, network, words)


@pytest.mark.parametrize("metadata", [{}, {"method": "guess"}, {"weights_sha256": "0"}])
def test_other_descriptions_are_refused_in_one_line(copied, metadata):
    folder, network = copied
    path = folder / "unknown.safetensors"
    known = read_safetensors_header(path).metadata
    save_file(load_file(path), path, known | metadata if metadata else {})
    refuse(folder, network, "expected")


def test_damaged_and_huge_files_are_refused_in_one_line(copied):
    folder, network = copied
    path = folder / "unknown.safetensors"
    good = path.read_bytes()
    header = json.dumps({"scores": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}}).encode()
    for content in (
        b"",
        b"{}",
        good[:50],
        good[:-1],
        good + b"x",
        b"\x80\x04N.",
        struct.pack("<Q", 2**62) + good[8:],
        struct.pack("<Q", len(header)) + header,
        bytes(13_000_000),
    ):
        path.write_bytes(content)
        refuse(folder, network, "unknown.safetensors")
    path.unlink()
    path.mkdir()
    with pytest.raises((ValueError, OSError)):
        read_unknown_detector(folder, network)


def refuse(folder, network, words):
    with pytest.raises(ValueError, match="tigranet calibrate") as error:
        read_unknown_detector(folder, network)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_without_enough_images_there_is_no_detector(fitted, monkeypatch):
    _, network, _ = fitted
    images = LabelledImages(torch.rand(4, 1, 12, 12), torch.arange(4) % 2)
    assert fit_unknown_detector(network, images, images.take([0])) is None
    output = io.StringIO()
    assert fit_unknown_detector(network, images.take([0]), images, Console(file=output, width=500)) is None
    assert "no detector of unknown images" in output.getvalue()
    assert isinstance(fit_unknown_detector(network, images, images), NoveltyDetector)
