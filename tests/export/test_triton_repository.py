import pytest
import torch
from google.protobuf import text_format
from google.protobuf.struct_pb2 import Struct

from export.conftest import calibrated
from tigranet.export.model_interface import model_interface
from tigranet.export.triton_repository import configuration, write_triton_repository


@pytest.mark.parametrize(
    ("preprocess", "expected"),
    [(False, ["images", "TYPE_FP32", "[ 2, -1, -1 ]"]), (True, ["pixels", "TYPE_UINT8", "[ -1, -1, 2 ]"])],
)
def test_the_configuration_names_input_and_output(preprocess, expected):
    interface = model_interface(calibrated("SC[2,2]-S[2]"), preprocess)
    text = configuration(interface, "digits")
    for part in [*expected, 'name: "digits"', f'"{interface.output_name}"', "dims: [ 3 ]", 'backend: "onnxruntime"']:
        assert part in text


def test_the_configuration_is_a_protocol_buffer_in_text_form():
    """The parser reads the whole text: an unknown field is its first complaint, rather than the syntax."""
    text = configuration(model_interface(calibrated("SC[2,2]-S[2]")), "digits")
    text_format.Parse(text, Struct(), allow_unknown_field=True)
    with pytest.raises(text_format.ParseError):
        text_format.Parse(text + "}", Struct(), allow_unknown_field=True)


def test_other_models_of_the_repository_stay(tmp_path):
    interface = model_interface(calibrated("SC[2,2]-S[2]", class_names=["a", "b\nc", "d"]))
    for name in ("first", "second", "first"):
        files = write_triton_repository(b"model", interface, interface.network.class_names, tmp_path, name)
        assert all(path.is_file() for path in files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]
    assert (tmp_path / "first" / "1" / "model.onnx").read_bytes() == b"model"
    assert (tmp_path / "first" / "labels.txt").read_text() == "a\nb c\nd\n"


@pytest.mark.parametrize("name", ["", "../x", "a b", 'a"', ".hidden", "a/b"])
def test_a_name_that_is_no_folder_name_is_refused(name, tmp_path):
    interface = model_interface(calibrated("SC[2,2]-S[2]"))
    with pytest.raises(ValueError, match="--name"):
        write_triton_repository(b"", interface, ("a", "b", "c"), tmp_path / "repository", name)
    assert not (tmp_path / "repository").exists()


def test_every_type_of_input_has_a_name():
    assert configuration(model_interface(calibrated("SC[2,2]-S[2]"), True), "x").count(str(torch.uint8)[6:].upper())
