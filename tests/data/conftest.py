import os
from pathlib import Path

import numpy as np
import pytest

from tigranet.data.sources.mnist import Mnist, checksum


@pytest.fixture
def small_mnist(monkeypatch) -> Mnist:
    """80 random images whose checksum is accepted as that of MNIST."""
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
    monkeypatch.setattr("tigranet.data.sources.mnist.SHA256", checksum(tuple(mnist)))
    return mnist


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder in TIGRANET_DATA, which must have the real files."""
    folder = Path(os.environ.get("TIGRANET_DATA", "nowhere"))
    for name in ("mnist.npz", "eth80.npz", "neu_steel64.npz"):
        if not (folder / name).is_file():
            pytest.skip(f"needs {name} in the folder in TIGRANET_DATA")
    return folder
