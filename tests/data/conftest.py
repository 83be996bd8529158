import os
from pathlib import Path

import numpy as np
import pytest

from tigranet.data.sources.mnist import Mnist


@pytest.fixture
def small_mnist(monkeypatch) -> Mnist:
    """Random digits, far fewer, that pass for MNIST."""
    rng = np.random.default_rng(0)
    mnist = Mnist(
        *(
            array
            for count in (60, 20)
            for array in (
                rng.integers(0, 256, (count, 28, 28), dtype=np.uint8),
                rng.permutation(np.arange(count, dtype=np.uint8) % 10),
            )
        )
    )
    monkeypatch.setattr("tigranet.data.sources.mnist.SHA256", _checksum(mnist))
    return mnist


def _checksum(mnist: Mnist) -> str:
    from tigranet.data.sources.mnist import checksum

    return checksum(tuple(mnist))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder that TIGRANET_DATA names, with the real files."""
    folder = Path(os.environ.get("TIGRANET_DATA", "nowhere"))
    for name in ("mnist.npz", "eth80.npz", "neu_steel64.npz"):
        if not (folder / name).is_file():
            pytest.skip(f"needs {name} in the folder that TIGRANET_DATA names")
    return folder
