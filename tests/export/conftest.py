import numpy as np
import onnxruntime
import pytest
import torch

from tigranet import GridLaplacian, TIGraNet
from tigranet.export.comparison import example_images
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx
from tigranet.export.portable_grid import GridOptions, PortableGrid, Stencils
from tigranet.pretrained import shipped

PYRAMID = "LC[2,5,4]-D-GB[3]-D-GC[4,3]-GB[5]-D-MO[6]-S[1]"
"""A pyramid with every layer of features with orientations."""
ALL_MAP_LAYERS = "SC[3,3]-DP[20]-MC[4,2]-D-GP[2,1]-MP[2]-OP[2]-R[3,1,2]-DP[9]-MC[3,0]-S[3]-FC[4]"
"""Every layer of maps without orientations, also after a pooling and after a coarsening."""
NETWORKS = {
    "pyramid": (PYRAMID, {}),
    "pyramid on the torus": (PYRAMID, {"boundary": "torus"}),
    "pyramid in a window": (PYRAMID, {"window": "disc", "margin": 3}),
    "maps": (ALL_MAP_LAYERS, {}),
    "maps on the torus": (ALL_MAP_LAYERS, {"boundary": "torus", "diagonal": 1.0}),
    "maps in a window": (ALL_MAP_LAYERS, {"window": "disc", "margin": 2, "neighbours": 4}),
    "paper's initialisation": ("SC[3,2]-S[2]", {"init": "paper", "boundary": "torus"}),
}
"""Networks that have all layers and all options together."""


def calibrated(architecture, channels=2, **options):
    """A network of random weights in evaluation mode. Its running moments come from a batch of images."""
    torch.manual_seed(0)
    net = TIGraNet(architecture, 3, channels, **options)
    spots = example_images(8, 17, 18, model_interface(net))
    net.train()(torch.cat([spots, torch.rand(8, channels, 17, 18)]))
    return net.eval()


def portable_grid(maps, boundary="free"):
    """The portable grid of maps."""
    return PortableGrid(Stencils(GridOptions(8, boundary, 0.3)), maps)


def assert_same_function(layer, portable, boundary, in_maps=8):
    """Check that a portable layer computes the function of its layer, with weights and moments that are not trivial."""
    height, width = 7, 6
    laplacian, maps = GridLaplacian(height, width, 8, boundary, 0.3), torch.rand(4, in_maps, height, width)
    for parameter in layer.parameters():  # also the scales and biases that start as ones and zeros
        torch.nn.init.normal_(parameter, std=0.5)
    with torch.no_grad():
        layer.train()(maps.flatten(2), laplacian)
        expected = layer.eval()(maps.flatten(2), laplacian).unflatten(2, (height, width))
        actual = portable(layer)(maps, portable_grid(maps, boundary))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def session_of(model):
    """Open an ONNX model in onnxruntime, with one thread, and with no warnings about the file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 2
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session, images):
    """Return the output of an exported network as a tensor."""
    (output,) = session.run(None, {session.get_inputs()[0].name: np.ascontiguousarray(images.numpy())})
    return torch.from_numpy(output)


@pytest.fixture(scope="session")
def exported():
    """The network of a name and its ONNX model in onnxruntime. Each is built once."""
    cache = {}

    def get(name):
        if name not in cache:
            if name in shipped():
                net = TIGraNet.from_pretrained(name)
            else:
                architecture, options = NETWORKS[name]
                net = calibrated(architecture, **options)
            cache[name] = net, session_of(build_onnx(model_interface(net)))
        return cache[name]

    return get
