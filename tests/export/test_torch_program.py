"""A program of torch.export is saved and loaded, and accepts other batch sizes, heights and widths."""

import json

import pytest
import torch

from export.conftest import calibrated
from tigranet.export.model_interface import model_interface
from tigranet.export.torch_program import METADATA_FILE, save_torch_program


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("LC[2,3,4]-D-GB[3]-MO[3]-S[1]", {"margin": 1}),
        ("SC[2,1]-DP[6]-MC[2,1]-S[1]", {"boundary": "torus", "window": "disc"}),
    ],
    ids=["pyramid", "maps"],
)
@pytest.mark.usefixtures("without_shape_checks")  # which a tracer would follow, too
def test_a_program_is_loaded_with_dynamic_shapes(architecture, options, tmp_path):
    net = calibrated(architecture, image_size=17, **options)
    save_torch_program(model_interface(net), tmp_path / "net.pt2")
    files = {METADATA_FILE: ""}
    program = torch.export.load(tmp_path / "net.pt2", extra_files=files).module()
    assert json.loads(files[METADATA_FILE])["image_size"] == "17"
    for shape in ((1, 4, 5), (7, 21, 18), (3, 17, 4)):
        images = torch.rand(shape[0], 2, *shape[1:])
        with torch.no_grad():
            torch.testing.assert_close(program(images), net(images), rtol=1e-4, atol=1e-4)
