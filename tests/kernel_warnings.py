"""Forget which warnings about kernels were already given, so that a test sees them again."""

import pytest

from tigranet.ops import cpu, fallback


@pytest.fixture
def fresh_warnings(monkeypatch):
    monkeypatch.setattr(fallback, "_warned", set())
    cpu.why_unavailable.cache_clear()
    yield
    cpu.why_unavailable.cache_clear()
