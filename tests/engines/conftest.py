"""Tests of the engines that other people run: Ray, Spark, Daft and an object store. ``make test-engines`` runs them."""

import pytest

from bulk_sources import save_model


@pytest.fixture(autouse=True)
def _plain_kernels(monkeypatch):
    """Compiling the fused kernels in every worker would take longer than the tests."""
    monkeypatch.setenv("TIGRANET_KERNELS", "plain")


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "m")
