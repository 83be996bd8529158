"""In onnxruntime, an exported network gives the logits of PyTorch, for any batch size, height and width."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper

import tigranet
from export.conftest import NETWORKS, calibrated, run, session_of
from tigranet.export import onnx_file
from tigranet.export.comparison import example_images
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx
from tigranet.layers.steerable_conv import SteerableConv
from tigranet.pretrained import shipped

SIZES = (12, 12), (13, 13), (16, 16), (11, 14)
"""Even and odd sides, and one size that is not square."""


def assert_equal_logits(actual, expected, tolerance):
    """Compare logits relative to the largest of them, or to 1 if they are small."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance * max(1.0, expected.abs().max().item()))


def pictures(net, count, height, width):
    """Bright spots, like objects on a plain background."""
    return example_images(count, height, width, model_interface(net))


@pytest.mark.parametrize("name", [*shipped(), *NETWORKS])
def test_the_logits_are_those_of_pytorch_at_every_size(name, exported):
    net, session = exported(name)
    for height, width in SIZES:
        images = pictures(net, 64, height, width)
        with torch.inference_mode():
            expected = net(images)
        for batch in (1, 7, 64):
            assert_equal_logits(run(session, images[:batch]), expected[:batch], 1e-4)


@pytest.mark.parametrize("name", [*shipped(), *NETWORKS])
def test_quarter_turns_change_nothing(name, exported):
    net, session = exported(name)
    images = torch.cat([pictures(net, 4, 14, 14), torch.rand(4, net.in_maps, 14, 14)])
    upright = run(session, images)
    tolerance = 1e-4 if "maps" in name else 1e-5  # products of random mixtures magnify rounding, in PyTorch too
    for turns in (1, 2, 3):
        assert_equal_logits(run(session, images.rot90(turns, (2, 3))), upright, tolerance)


@pytest.mark.parametrize("name", [name for name in shipped() if name.startswith("paper")])
def test_pooling_keeps_the_same_pixels_of_noise(name, exported):
    """Values of noise lie close to the threshold of the pooling: one different bit would change the active nodes."""
    net, session = exported(name)
    images = torch.rand(64, 1, 25, 17)
    with torch.inference_mode():
        assert_equal_logits(run(session, images), net(images), 1e-5)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (4, 2), (1, 5), (3, 3)])
@pytest.mark.parametrize("name", ["paper's initialisation", "oriented-mnist-trans", "oriented-mnist-012"])
def test_images_of_few_pixels(name, shape, exported):
    """On the torus, an axis of 1 or 2 pixels is not closed."""
    net, session = exported(name)
    images = torch.rand(3, net.in_maps, *shape)
    with torch.inference_mode():
        assert_equal_logits(run(session, images), net(images), 1e-4)


@pytest.mark.parametrize("shape", [(9, 9), (17, 9), (8, 12), (10, 31)])
@pytest.mark.parametrize("name", ["pyramid", "pyramid on the torus"])
def test_pyramids_at_the_smallest_sizes_and_every_parity(name, shape, exported):
    net, session = exported(name)
    images = torch.rand(2, 2, *shape)
    with torch.inference_mode():
        assert_equal_logits(run(session, images), net(images), 1e-4)


def test_strict_pooling_keeps_the_same_number_of_pixels():
    net = calibrated("SC[3,2]-DP[7]-S[1]", ties="strict")
    session = session_of(build_onnx(model_interface(net)))
    for height, width in ((9, 8), (2, 3)):  # in the second case there are fewer pixels than active nodes
        images = torch.rand(5, 2, height, width)
        with torch.inference_mode():
            assert_equal_logits(run(session, images), net(images), 1e-4)


def test_the_metadata_describe_the_network():
    net = calibrated("SC[2,2]-S[2]", class_names=["a", "b", 'ç"'], image_size=20)
    model = build_onnx(model_interface(net))
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(metadata["class_names"]) == ["a", "b", 'ç"']
    assert (metadata["image_size"], metadata["channels"], metadata["value_range"]) == ("20", "2", "[0, 1]")
    assert (metadata["layout"], metadata["output"], metadata["precision"]) == ("NCHW", "logits", "float32")
    assert (model.producer_name, model.producer_version) == ("tigranet", tigranet.__version__)
    (images,), (logits,) = session_of(model).get_inputs(), session_of(model).get_outputs()
    assert (images.name, images.shape, images.type) == ("images", ["batch", 2, "height", "width"], "tensor(float)")
    assert (logits.name, logits.shape) == ("logits", ["batch", 3])


def test_every_constant_is_used():
    model = build_onnx(model_interface(calibrated("MC[4,2]-OP[2]-MC[4,2]-S[1]")))
    used = {name for node in model.graph.node for name in node.input}
    assert {constant.name for constant in model.graph.initializer} <= used


def test_a_group_convolution_stores_its_weights_and_the_runtime_rotates_them_when_it_loads_the_file(tmp_path):
    net = calibrated("LC[12,5,8]-GB[3]-MO[6]-S[1]")
    model = build_onnx(model_interface(net))
    stored = sum(numpy_helper.to_array(constant).nbytes for constant in model.graph.initializer)
    weights = sum(tensor.nbytes for tensor in net.state_dict().values())
    rotated = sum(conv.filters().nbytes for conv in net.modules() if isinstance(conv, SteerableConv))
    assert stored < 1.3 * weights < 0.2 * rotated  # the circular harmonics are also stored
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    loaded = onnx.load(tmp_path / "loaded.onnx").graph
    constants = {constant.name for constant in loaded.initializer}
    filters = [node.input[1] for node in loaded.node if node.op_type == "Conv"]
    assert len(filters) >= 4
    assert set(filters) <= constants


@pytest.mark.parametrize("name", ["oriented-mnist-012", "paper-mnist-012", "pyramid"])
def test_half_precision_loses_little_and_halves_the_weights(name, exported):
    net, session = exported(name)
    single, half = (build_onnx(model_interface(net), precision) for precision in ("float32", "float16"))
    sizes = [sum(numpy_helper.to_array(part).nbytes for part in model.graph.initializer) for model in (single, half)]
    assert sizes[1] < 0.7 * sizes[0]
    images = pictures(net, 32, 20, 20)
    expected, actual = run(session, images).softmax(1), run(session_of(half), images).softmax(1)
    assert (expected - actual).abs().max() < 0.01
    assert np.array_equal(expected.argmax(1), actual.argmax(1))


def test_weights_that_do_not_fit_into_a_file_are_refused(monkeypatch):
    monkeypatch.setattr(onnx_file, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"1,000 bytes.*float16"):
        build_onnx(model_interface(calibrated("MC[20,5]-MC[20,5]-S[2]")))


def test_without_onnx_the_error_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"tigranet\[export\]"):
        build_onnx(model_interface(calibrated("SC[2,2]-S[2]")))


def test_the_file_is_read_by_the_oldest_supported_runtime():
    """onnxruntime 1.18 reads version 10 of the file format and version 21 of the operators."""
    model = build_onnx(model_interface(calibrated("SC[2,2]-S[2]")))
    assert model.ir_version <= 10
    assert model.opset_import[0].version <= 21
    assert all(node.domain == "" for node in model.graph.node)
    assert onnx.checker.check_model(model) is None
