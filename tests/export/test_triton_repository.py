import pytest
from google.protobuf import descriptor_pb2, message_factory, text_format

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


def model_config():
    """The fields of Triton's message ModelConfig that a configuration uses."""
    field = descriptor_pb2.FieldDescriptorProto
    optional, repeated = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    file = descriptor_pb2.FileDescriptorProto(name="model_config.proto", package="test", syntax="proto3")
    types = file.enum_type.add(name="DataType")
    for number, name in enumerate(("TYPE_INVALID", "TYPE_UINT8", "TYPE_FP32")):
        types.value.add(name=name, number=number)
    messages = {
        "Tensor": [
            ("name", field.TYPE_STRING, optional, ""),
            ("data_type", field.TYPE_ENUM, optional, "DataType"),
            ("dims", field.TYPE_INT64, repeated, ""),
            ("label_filename", field.TYPE_STRING, optional, ""),
        ],
        "Batching": [],
        "ModelConfig": [
            ("name", field.TYPE_STRING, optional, ""),
            ("backend", field.TYPE_STRING, optional, ""),
            ("max_batch_size", field.TYPE_INT32, optional, ""),
            ("input", field.TYPE_MESSAGE, repeated, "Tensor"),
            ("output", field.TYPE_MESSAGE, repeated, "Tensor"),
            ("dynamic_batching", field.TYPE_MESSAGE, optional, "Batching"),
        ],
    }
    for message, fields in messages.items():
        described = file.message_type.add(name=message)
        for number, (name, kind, label, type_name) in enumerate(fields, start=1):
            type_name = f".test.{type_name}" if type_name else None
            described.field.add(name=name, number=number, type=kind, label=label, type_name=type_name)
    return message_factory.GetMessages([file])["test.ModelConfig"]()


def test_the_configuration_is_a_protocol_buffer_in_text_form():
    text = configuration(model_interface(calibrated("SC[2,2]-S[2]")), "digits")
    config = text_format.Parse(text, model_config())
    assert (config.name, config.backend, config.max_batch_size) == ("digits", "onnxruntime", 64)
    assert (config.input[0].name, list(config.input[0].dims), config.input[0].data_type) == ("images", [2, -1, -1], 2)
    assert (config.output[0].label_filename, list(config.output[0].dims)) == ("labels.txt", [3])


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
