"""Operations of PyTorch and their translations give the same numbers in onnxruntime."""

import pytest
import torch

from export.conftest import run
from export.traced_function import in_onnxruntime

FUNCTIONS = {
    "arithmetic": lambda x: (2 - x) * x / (1 + x.abs()) + -x,
    "division of a number": lambda x: 1 / (x.square() + 1),
    "remainder of negative numbers": lambda x: (x - 5) % 3,
    "clamp": lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0.1),
    "positions": lambda x: torch.ones_like(x[0, 0, 0]).cumsum(0),
    "slices": lambda x: x[:, :1, 1:, :-1] + x[:, 1:2, 1:, :-1],
    "one pixel": lambda x: x[0, 0, :, 0],
    "reductions": lambda x: x.sum((2, 3), keepdim=True) + x.mean((2, 3), keepdim=True) + x.amax() + x.amin(),
    "masks": lambda x: torch.where((x > 0) & (x >= 0.5), x, 0.0) * (x > 0.7).any(dim=1, keepdim=True),
    "a mask in front": lambda x: (x > 0) * x,
    "parts": lambda x: x.split(1, dim=1)[1] - x.split(1, dim=1)[0],
    "new axes": lambda x: torch.stack([x, 2 * x], dim=-1).flatten(1).unsqueeze(1),
    "unflattened axes": lambda x: x.unflatten(1, (1, 2)).amax(1),
    "permuted axes": lambda x: x.permute(0, 2, 3, 1),
    "softmax": lambda x: torch.softmax(x, dim=1),
    "half of a size": lambda x: x.topk(x.shape[3] // 2, dim=-1).values.amin(-1),
    "slices that may be empty": lambda x: torch.cat([x[:, :, :1], x[:, :, 1:][:, :, -1:], x[:, :, 1:-1]], 2),
    "square root": lambda x: x.abs().sqrt(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_operation_at_other_sizes_than_that_of_the_example(name):
    function = FUNCTIONS[name]
    session = in_onnxruntime(function, torch.randn(2, 2, 4, 5))
    for shape in ((2, 2, 4, 5), (1, 2, 7, 3), (5, 2, 2, 2)):
        x = torch.randn(*shape)
        torch.testing.assert_close(run(session, x), function(x).float())
