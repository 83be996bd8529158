"""Fixtures of all tests.

The process that distributes the tests to the workers loads this file too, and nothing else: the fixtures import PyTorch
and tigranet when they run, so that it need not wait ten seconds for packages that it does not use.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from warm_process import WarmProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tigranet import TIGraNet
    from tigranet.data import DataSet

# Kernels that were compiled in one session are used in the next. This comes before collection, which imports them.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "numba"))


LONG_TESTS = (
    "test_a_page_runs_as_written[your-images]",
    "test_the_compiled_network_gives_the_same_logits_and_gradients",
    "test_a_worker_that_is_killed_loses_nothing",
    "test_two_processes_give_the_weights_of_one",
    "test_the_papers_small_network_reaches_the_papers_accuracy",
    "test_several_processes",
)
"""Parts of the names of tests that take 10 seconds or more. They come first, so that at the end of a session no worker
waits for another one that has just begun one of them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move long tests to the front; all others keep their order."""
    items.sort(key=lambda item: not any(name in item.nodeid for name in LONG_TESTS))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests marked ``gpu`` where there is none."""
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device on this machine")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep imported modules and tests from the garbage collector, which would visit their millions of objects often."""
    gc.disable()
    try:
        return (yield)
    finally:
        if "hypothesis" in sys.modules:  # while it is imported, it looks for objects that are not frozen
            gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _seeded():
    import torch

    torch.default_generator.manual_seed(0)  # torch.manual_seed formats the call stack for three kinds of devices: 1 ms
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(0)


@pytest.fixture(autouse=True, scope="session")
def _cache_of_its_own(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIGRANET_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def without_shape_checks():
    """Shapes are not checked for users: they meet the library's own messages."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def undrawn_figures(monkeypatch):
    """Pages of reports have an empty element in the place of each figure. Drawing those of one page takes a second."""
    if find_spec("matplotlib") is None:  # as in the environment of the engines, where nothing is drawn
        return
    monkeypatch.setattr(
        "tigranet.figures.report_figures.inline_svg", lambda draw, size, title: f"<svg><title>{title}</title></svg>"
    )


@pytest.fixture
def whole_results():
    """For tests of what ``shorten_results`` leaves out."""


@pytest.fixture(scope="session")
def warm_process() -> Iterator[WarmProcess]:
    """Run programs in processes of their own, in which all packages are loaded."""
    process = WarmProcess()
    yield process
    process.close()


@pytest.fixture(scope="session")
def torch_process() -> Iterator[WarmProcess]:
    """Run programs in processes of their own, in which PyTorch is loaded and nothing else."""
    process = WarmProcess(("torch",))
    yield process
    process.close()


@pytest.fixture(scope="session")
def mnist_012() -> DataSet:
    from tigranet.data import load

    return load("mnist-012", seed=0)


def _trained(data: DataSet, boundary: str) -> TIGraNet:
    import torch

    from tigranet import TIGraNet
    from tigranet.training import Recipe, fit

    torch.manual_seed(0)
    net = TIGraNet("paper-small", num_classes=3, boundary=boundary)
    fit(net, data.train, data.validation, Recipe(epochs=4))
    return net.cpu()


@pytest.fixture(scope="session")
def trained(mnist_012) -> TIGraNet:
    """A network that has learned something, on the paper's grid."""
    return _trained(mnist_012, "free")


@pytest.fixture(scope="session")
def trained_on_torus(mnist_012) -> TIGraNet:
    return _trained(mnist_012, "torus")
