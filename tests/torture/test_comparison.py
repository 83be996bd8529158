"""Two results are equal only if every bit is, apart from times, dates and the typed command."""

import json

import pytest
import torch
from torture.comparison import differences, fingerprints

from tigranet import TIGraNet


@pytest.fixture
def results(tmp_path):
    """Two folders with the same network, record, table and checkpoint."""
    torch.manual_seed(0)
    network = TIGraNet("SC[2,1]-S[1]-FC[2]", 2)
    folders = [tmp_path / name for name in ("first", "second")]
    for number, folder in enumerate(folders):
        network.save_pretrained(folder)
        (folder / "training.json").write_text(json.dumps({"seconds": number, "seed": 0, "command": f"run {number}"}))
        (folder / "history.csv").write_text(f"epoch,loss,seconds\n1,0.5,{number}\n")
        (folder / "report.json").write_text(json.dumps({"made": {"training_seconds": {"plain CNN": number}}}))
        rows = "".join(f"<dt>{name}</dt><dd>{number}</dd>" for name in ("date", "training time"))
        (folder / "report.html").write_text(f"<dl>{rows}</dl></html>")
        checkpoint = {"state_dict": network.state_dict(), "optimizer_states": [], "lr_schedulers": []}
        torch.save(checkpoint | {"epoch": 1, "global_step": 2, "time": number}, folder / "last.ckpt")
    return folders


def compare(results):
    return differences(*map(fingerprints, results))


def test_equal_results_differ_only_in_times_dates_and_commands(results):
    assert compare(results) == []


def test_one_bit_of_one_weight_is_a_difference(results):
    network = TIGraNet.from_pretrained(results[1])
    with torch.no_grad():
        weight = next(network.parameters())
        weight.view(torch.int32).view(-1)[0] ^= 1
    network.save_pretrained(results[1])
    (name,) = compare(results)
    assert name.startswith("model.safetensors: ")


def test_the_same_bits_as_another_type_are_a_difference(results):
    for folder, dtype in zip(results, (torch.int32, torch.float32), strict=True):
        checkpoint = torch.load(folder / "last.ckpt", weights_only=True)
        torch.save(checkpoint | {"optimizer_states": [torch.zeros(3, dtype=dtype)]}, folder / "last.ckpt")
    assert compare(results) == ["last.ckpt: optimizer_states"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("training.json", '{"seconds": 1, "seed": 1}'),
        ("history.csv", "epoch,loss,seconds\n1,0.6,1\n"),
        ("report.html", "<dl><dt>date</dt><dd>0</dd><dt>model</dt><dd>m</dd></dl></html>"),
    ],
)
def test_other_values_of_texts_are_differences(results, name, content):
    (results[1] / name).write_text(content)
    assert compare(results) == [name]


def test_missing_and_additional_files_are_differences(results):
    (results[0] / "training.json").unlink()
    (results[1] / "new.bin").write_bytes(b"1")
    assert compare(results) == ["new.bin", "training.json"]


def test_hidden_files_are_not_compared(results):
    (results[0] / ".saving-1").write_bytes(b"1")
    assert compare(results) == []
