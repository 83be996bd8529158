"""The statistics of 26 x 26 maps in several languages for GPU kernels, to choose the language of our kernels.

Run ``python -m benchmarks.languages`` on a machine with a GPU, Triton and numba-cuda. All kernels read a map once and
write its statistics. They differ in where they store the map and how a node reads its neighbours:

* CUDA C++ (ours): in registers, by warp shuffles;
* Triton, which has no shuffles: in a tile, with sums through a scratch buffer in global memory that stays in the cache,
  or as two products with a banded matrix;
* numba-cuda: in a local array, or in one variable per row, with one column per lane, by warp shuffles.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import DEVICE, Row, compare, write
from tigranet import GridLaplacian, Statistics
from tigranet.ops import using

SIZE, MAPS, ORDER = 26, 20, 12
BATCH = 500

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def measure() -> list[Row]:
    """Time the kernels in all languages that are installed."""
    torch.manual_seed(0)
    grid = GridLaplacian(SIZE, SIZE)
    z = torch.randn(BATCH, MAPS, SIZE * SIZE, device=DEVICE)
    active = torch.rand_like(z) < 0.5
    candidates: dict[str, Callable[[], Tensor]] = {"fused": partial(_fused_or_plain, "fused", grid, z, active)}
    if triton is not None:
        for warps in (1, 2, 4):
            candidates[f"Triton, scratch, {warps}"] = _by_triton(statistics_by_scratch, z, active, grid, warps)
            candidates[f"Triton, products, {warps}"] = _by_triton(statistics_by_products, z, active, grid, warps)
    try:
        candidates["numba-cuda, local array"] = _by_numba(z, active, grid, unrolled=False)
        candidates["numba-cuda, unrolled"] = _by_numba(z, active, grid, unrolled=True)
    except ImportError:
        print("skipped numba-cuda: it is not installed")
    expected = _fused_or_plain("plain", grid, z, active)
    for name, candidate in list(candidates.items()):
        try:
            torch.testing.assert_close(candidate(), expected, rtol=1e-4, atol=1e-6)
        except Exception as error:  # a compiler that fails is a result too
            print(f"skipped {name}: {str(error).splitlines()[0]}")
            del candidates[name]
    return compare("statistics, by language", SIZE, candidates)


def _fused_or_plain(mode: Any, grid: GridLaplacian, z: Tensor, active: Tensor) -> Tensor:
    with using(mode), torch.no_grad():
        return Statistics(ORDER)(z, grid, active)


if triton is not None:

    @triton.jit
    def _moments(t, inside, phi, k, nodes: tl.constexpr):
        size = tl.abs(t)
        mean = tl.sum(tl.sum(size, 1), 0) / nodes
        d = tl.where(inside, size - mean, 0.0)
        tl.store(phi + 2 * k, mean)
        tl.store(phi + 2 * k + 1, tl.sum(tl.sum(d * d, 1), 0) / nodes)

    @triton.jit
    def _load(z, active, root, item, size: tl.constexpr, side: tl.constexpr):
        row, column = tl.arange(0, side)[:, None], tl.arange(0, side)[None, :]
        inside = (row < size) & (column < size)
        node = row * size + column
        at = item.to(tl.int64) * size * size + node
        t = tl.load(z + at, inside, 0.0) * tl.load(active + at, inside, 0).to(tl.float32)
        return t, tl.load(root + node, inside, 0.0), inside

    @triton.jit
    def statistics_by_scratch(z, active, root, band, scratch, phi, size: tl.constexpr, side: tl.constexpr, order):
        """One program per map: sums of three columns, then of three rows, through a scratch with a border of zeros."""
        item = tl.program_id(0)
        t, s, inside = _load(z, active, root, item, size, side)
        phi += item * 2 * (order + 1)
        _moments(t, inside, phi, 0, size * size)
        row, column = tl.arange(0, side)[:, None], tl.arange(0, side)[None, :]
        stride: tl.constexpr = side + 2
        here = scratch + item.to(tl.int64) * 2 * stride * stride + (row + 1) * stride + column + 1
        there = here + stride * stride
        p = s * t
        previous = tl.zeros_like(p)
        over = tl.where(inside, 1 / s, 0.0)
        for k in range(1, order + 1):
            tl.store(here, p)
            tl.debug_barrier()
            three = tl.load(here - 1) + p + tl.load(here + 1)
            tl.store(there, three)
            tl.debug_barrier()
            total = tl.load(there - stride) + three + tl.load(there + stride) - p
            factor = tl.where(k == 1, 1.0, 2.0)
            previous, p = p, -factor * s * s * total - previous
            _moments(p * over, inside, phi, k, size * size)

    @triton.jit
    def statistics_by_products(z, active, root, band, scratch, phi, size: tl.constexpr, side: tl.constexpr, order):
        """One program per map: the sum over a node and its neighbours is B p B, where B has three diagonals of ones."""
        item = tl.program_id(0)
        t, s, inside = _load(z, active, root, item, size, side)
        phi += item * 2 * (order + 1)
        _moments(t, inside, phi, 0, size * size)
        b = tl.load(band + tl.arange(0, side)[:, None] * side + tl.arange(0, side)[None, :])
        p = s * t
        previous = tl.zeros_like(p)
        over = tl.where(inside, 1 / s, 0.0)
        for k in range(1, order + 1):
            across = tl.dot(p, b, input_precision="ieee")
            total = tl.dot(b, across, input_precision="ieee") - p
            factor = tl.where(k == 1, 1.0, 2.0)
            previous, p = p, -factor * s * s * total - previous
            _moments(p * over, inside, phi, k, size * size)


def _by_triton(kernel: Any, z: Tensor, active: Tensor, grid: GridLaplacian, warps: int) -> Callable[[], Tensor]:
    """Return a call of a Triton kernel, in which a map is a tile of 32 x 32 in the registers of ``warps`` warps."""
    items, side = z.shape[0] * z.shape[1], 32
    root, numbers = _constant(grid, z), torch.arange(side, device=z.device)
    band = ((numbers[:, None] - numbers).abs() <= 1).float()
    scratch = z.new_zeros(items, 2, side + 2, side + 2) if kernel is statistics_by_scratch else z

    def run() -> Tensor:
        phi = z.new_empty(len(z), z.shape[1] * 2 * (ORDER + 1))
        kernel[(items,)](z, active, root, band, scratch, phi, SIZE, side, ORDER, num_warps=warps)
        return phi

    return run


def _constant(grid: GridLaplacian, z: Tensor) -> Tensor:
    """Return the square root of the inverse degree of each node."""
    return grid.inverse_sqrt_degree.to(z)


def _numba_source(unrolled: bool) -> str:
    """Return the source of the kernel.

    Lines with an @ are repeated for every row: in a loop over local arrays, or unrolled with one variable per row.
    """
    lines: list[str] = []
    rows: list[str] = []
    for line in [*NUMBA.replace("SIZE", str(SIZE)).replace("ORDER", str(ORDER)).splitlines(), ""]:
        if "@ " in line:
            rows.append(line)
            continue
        if rows and unrolled:
            lines += [_row_line(row, str(r)) for r in range(SIZE) for row in rows]
        elif rows:
            indent = rows[0].split("@")[0]
            lines += [
                f"{indent}for r in range({SIZE}):",
                *(_row_line(row, "r").replace(indent, indent + "    ", 1) for row in rows),
            ]
        rows = []
        if not (unrolled and "local.array" in line):
            first = r"\g<1>0" if unrolled else r"\g<1>[0]"
            lines.append(re.sub(r"\b([ab])_first", first, line))
    return "\n".join(lines)


def _row_line(line: str, r: str) -> str:
    """Insert the variables of row r: a_r and b_r of this row, a_next and b_next of the next row, s_r and over_r."""
    line = line.replace("@ ", "")
    for name in "ab":
        if r == "r":
            line = line.replace(f"{name}_next", f"({name}[r + 1] if r < {SIZE - 1} else float32(0))")
            line = line.replace(f"{name}_r", f"{name}[r]")
        else:
            following = f"{name}{int(r) + 1}" if int(r) < SIZE - 1 else "float32(0)"
            line = line.replace(f"{name}_next", following).replace(f"{name}_r", f"{name}{r}")
    for name, edge, middle in (("s_r", "edge", "middle"), ("over_r", "over_edge", "over_middle")):
        selection = f"({edge} if r == 0 or r == {SIZE - 1} else {middle})"
        line = line.replace(name, selection if r == "r" else edge if int(r) in (0, SIZE - 1) else middle)
    return line.replace("ROW", r)


def _numba_moments(name: str, scale: str, k: str, indent: str) -> str:
    """Return the source that computes mean and variance of order k."""
    return f"""
{indent}total = float32(0)
{indent}@ total += abs({name}_r) * {scale}
{indent}for shift in (16, 8, 4, 2, 1):
{indent}    total += cuda.shfl_xor_sync(ALL, total, shift)
{indent}mean = total * float32(1 / SIZE**2)
{indent}squares = float32(0)
{indent}@ d = (abs({name}_r) * {scale} - mean) * lane_mask
{indent}@ squares += d * d
{indent}for shift in (16, 8, 4, 2, 1):
{indent}    squares += cuda.shfl_xor_sync(ALL, squares, shift)
{indent}if lane == 0:
{indent}    phi[item, 2 * {k}] = mean
{indent}    phi[item, 2 * {k} + 1] = squares * float32(1 / SIZE**2)
"""


def _numba_step(v: str, previous: str, factor: str, indent: str) -> str:
    """Return the source of one step of the Chebyshev recursion."""
    first = f"{v}_first"
    return f"""
{indent}above, row = float32(0), {first}
{indent}row = row + cuda.shfl_sync(ALL, row, left) + cuda.shfl_sync(ALL, row, right)
{indent}@ below = {v}_next
{indent}@ below = below + cuda.shfl_sync(ALL, below, left) + cuda.shfl_sync(ALL, below, right)
{indent}@ {previous}_r = -{factor} * s_r * s_r * (above + row + below - {v}_r) - {previous}_r
{indent}@ above, row = row, below
"""


NUMBA = f"""
def statistics(z, active, root, phi, items):
    lane = cuda.threadIdx.x
    item = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    if item >= items:
        return
    inside = lane < SIZE
    column = lane if inside else 0
    lane_mask = float32(1) if inside else float32(0)
    edge, middle = root[column] * lane_mask, root[SIZE + column] * lane_mask
    over_edge, over_middle = lane_mask / root[column], lane_mask / root[SIZE + column]
    left, right = (lane - 1) & 31, (lane + 1) & 31
    a = cuda.local.array(SIZE, float32)
    b = cuda.local.array(SIZE, float32)
    @ a_r = z[item, ROW * SIZE + column] * float32(active[item, ROW * SIZE + column]) * lane_mask
    @ b_r = float32(0)
{_numba_moments("a", "float32(1)", "0", "    ")}
    @ a_r *= s_r
    for k in range(1, ORDER + 1, 2):
        factor = float32(1) if k == 1 else float32(2)
{_numba_step("a", "b", "factor", "        ")}
{_numba_moments("b", "over_r", "k", "        ")}
        if k < ORDER:
{_numba_step("b", "a", "float32(2)", "            ")}
{_numba_moments("a", "over_r", "(k + 1)", "            ")}
"""


def _by_numba(z: Tensor, active: Tensor, grid: GridLaplacian, unrolled: bool) -> Callable[[], Tensor]:
    """Return a call of the numba-cuda kernel."""
    from numba import cuda, float32

    namespace = {"cuda": cuda, "float32": float32, "ALL": 0xFFFFFFFF}
    exec(_numba_source(unrolled), namespace)
    kernel = cuda.jit(namespace["statistics"])
    items, maps_per_block = z.shape[0] * z.shape[1], 4
    root = _constant(grid, z)

    def run() -> Tensor:
        phi = z.new_empty(items, 2 * (ORDER + 1))
        arrays = (z.view(items, -1), active.view(torch.uint8).view(items, -1), root.flatten(), phi)
        stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
        kernel[-(-items // maps_per_block), (32, maps_per_block), stream](
            *(cuda.as_cuda_array(array) for array in arrays), items
        )
        return phi.view(len(z), -1)

    return run


if __name__ == "__main__":
    write("languages", measure())
