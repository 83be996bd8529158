"""A program of torch.export is saved and loaded, and accepts other batch sizes, heights and widths."""

import json

import pytest
import torch

from export.conftest import ALL_MAP_LAYERS, PYRAMID, calibrated
from tigranet.export.model_interface import model_interface
from tigranet.export.torch_program import METADATA_FILE, save_torch_program


@pytest.mark.parametrize(
    ("architecture", "options"),
    [(PYRAMID, {}), (ALL_MAP_LAYERS, {"boundary": "torus", "window": "disc"})],
    ids=["pyramid", "maps"],
)
def test_a_program_is_loaded_with_dynamic_shapes(architecture, options, tmp_path):
    net = calibrated(architecture, image_size=17, **options)
    save_torch_program(model_interface(net), tmp_path / "net.pt2")
    files = {METADATA_FILE: ""}
    program = torch.export.load(tmp_path / "net.pt2", extra_files=files).module()
    assert json.loads(files[METADATA_FILE])["image_size"] == "17"
    for shape in ((1, 16, 16), (7, 21, 18), (3, 17, 40)):
        images = torch.rand(shape[0], 2, *shape[1:])
        with torch.no_grad():
            torch.testing.assert_close(program(images), net(images), rtol=1e-4, atol=1e-4)
