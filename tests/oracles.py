"""Independent computations to compare with, by loops and SciPy, and random inputs of many kinds."""

import numpy as np
import torch
from scipy.sparse.csgraph import laplacian as scipy_laplacian
from torch import Tensor

from tigranet import GridLaplacian, Laplacian, SparseLaplacian

GRIDS = [
    (height, width, neighbours, boundary, diagonal)
    for height, width in [(5, 5), (4, 7), (7, 3), (1, 6), (6, 1), (2, 5), (2, 2), (1, 2), (3, 3)]
    for neighbours, diagonal in [(4, 1.0), (8, 1.0), (8, 0.25)]
    for boundary in ("free", "torus")
]


def grid_adjacency(height: int, width: int, neighbours: int, boundary: str, diagonal: float = 1.0) -> np.ndarray:
    """Return the adjacency matrix of the grid, computed edge by edge.

    Pixels are joined if they are at most one step apart along each axis. No edge is doubled, even on a small torus.
    """
    adjacency = np.zeros((height * width, height * width))
    for r in range(height):
        for c in range(width):
            for row_step in (-1, 0, 1):
                for column_step in (-1, 0, 1):
                    if neighbours == 4 and row_step != 0 and column_step != 0:
                        continue
                    row, column = r + row_step, c + column_step
                    if boundary == "torus":
                        row, column = row % height, column % width
                    if not (0 <= row < height and 0 <= column < width) or (row, column) == (r, c):
                        continue
                    weight = diagonal if row != r and column != c else 1.0
                    adjacency[r * width + c, row * width + column] = weight
    return adjacency


def normalized_laplacian(adjacency: np.ndarray) -> Tensor:
    """Return the dense normalized Laplacian of SciPy."""
    return torch.from_numpy(scipy_laplacian(adjacency, normed=True))


def random_graph(nodes: int = 12, seed: int = 0) -> np.ndarray:
    """Return the adjacency matrix of a connected graph with random weights: a ring with some chords."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((nodes, nodes)) * (rng.random((nodes, nodes)) < 0.3), 1)
    for i in range(nodes):
        upper[min(i, (i + 1) % nodes), max(i, (i + 1) % nodes)] = 0.5 + rng.random()
    return upper + upper.T


def some_laplacians() -> dict[str, Laplacian]:
    """Return one Laplacian of each kind, for tests of properties that all Laplacians have."""
    mask = torch.tensor([[0, 1, 1, 0], [1, 1, 1, 1], [0, 1, 0, 1]], dtype=torch.bool)
    return {
        "free grid": GridLaplacian(4, 5),
        "free grid, 4 neighbours": GridLaplacian(5, 3, neighbours=4),
        "torus": GridLaplacian(4, 5, boundary="torus"),
        "isotropic torus": GridLaplacian(3, 6, boundary="torus", diagonal=0.25),
        "line": GridLaplacian(1, 7),
        "weighted graph": SparseLaplacian(random_graph()),
        "mask": SparseLaplacian.from_mask(mask),
    }


def blank_with_patch(size: int = 20, patch: int = 6, count: int = 4, seed: int = 0, dtype=torch.float32) -> Tensor:
    """Return images that are zero except for one random patch, so that many pixels have equal values."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.zeros(count, 1, size, size, dtype=dtype)
    for image in images:
        top, left = torch.randint(0, size - patch + 1, (2,), generator=generator).tolist()
        image[0, top : top + patch, left : left + patch] = torch.rand(
            patch, patch, generator=generator, dtype=torch.float32
        )
    return images


def random_grid(rng: np.random.Generator, max_side: int = 24) -> GridLaplacian:
    """Return a random grid, including lines, axes of two pixels, both boundaries and all neighbourhoods."""
    height, width = (int(rng.choice([1, 2, 3, rng.integers(4, max_side)])) for _ in range(2))
    neighbours, diagonal = [(4, 1.0), (8, 1.0), (8, 0.3)][rng.integers(3)]
    boundary = ["free", "torus"][rng.integers(2)]
    return GridLaplacian(height, max(width, 3 - height), neighbours, boundary, diagonal)


def random_signal(rng: np.random.Generator, batch: int, maps: int, nodes: int) -> Tensor:
    """Return a random signal of a random kind, memory layout and precision.

    Its values are noise, sparse, constant, huge, tiny, rounded or nonnegative.
    """
    y = torch.from_numpy(rng.standard_normal((batch, maps, nodes)))
    kind = rng.integers(7)
    if kind == 1:
        y *= torch.from_numpy(rng.random(y.shape) < 0.1)
    elif kind == 2:
        y = torch.full_like(y, 0.7)
    elif kind == 3:
        y *= 1e12
    elif kind == 4:
        y *= 1e-12
    elif kind == 5:
        y = y.round()
    elif kind == 6:
        y = y.abs()
    y = y.to([torch.float32, torch.float64][rng.integers(2)])
    layout = rng.integers(4)
    if layout == 1:
        y = y.transpose(0, 2).contiguous().transpose(0, 2)
    elif layout == 2:
        y = torch.stack((y, y + 1), dim=-1)[..., 0]
    elif layout == 3:
        y = y[:1].expand(batch, -1, -1)
    return y
