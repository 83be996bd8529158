import pytest

from bulk_sources import save_model


@pytest.fixture(autouse=True)
def _plain_kernels(monkeypatch):
    """Compiling the fused kernels would take longer than all these tests."""
    monkeypatch.setenv("TIGRANET_KERNELS", "plain")


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "m")
