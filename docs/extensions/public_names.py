"""Check that the API reference describes every public name, whatever module it is described under."""

import inspect
from importlib import import_module
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

MODULES = ("tigranet", "tigranet.layers", "tigranet.graphs", "tigranet.serving")
"""Modules that list their public names in ``__all__``."""
WORKFLOWS = (
    "calibrate", "compare", "evaluate", "explain", "export", "features", "figures", "first_answer", "predict", "report",
    "train",
)  # fmt: skip
"""Modules of ``tigranet.workflows`` whose functions and classes are public, besides any that match a command."""

logger = logging.getLogger(__name__)


def public_objects() -> dict[str, Any]:
    """Return every public function, class and constant by one of its names."""
    objects = {f"{name}.{entry}": getattr(import_module(name), entry) for name in MODULES for entry in _all(name)}
    for name in ("tigranet.testing", *(f"tigranet.workflows.{workflow}" for workflow in WORKFLOWS)):
        module = import_module(name)
        objects |= {
            f"{name}.{entry}": value
            for entry, value in vars(module).items()
            if not entry.startswith("_")
            and (inspect.isclass(value) or inspect.isfunction(value))
            and value.__module__ == name
        }
    return objects


def _all(module: str) -> list[str]:
    return list(import_module(module).__all__)


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of public objects that no page describes."""
    described = set()
    for name in env.domains.python_domain.objects:
        module, _, attribute = name.rpartition(".")
        try:
            described.add(id(getattr(import_module(module), attribute)))
        except (ImportError, AttributeError, ValueError):  # a method or an attribute of a class
            continue
    for name, value in public_objects().items():
        if id(value) not in described:
            logger.warning("%s is public, but no page of docs/reference describes it", name, type="public_names")


def setup(app: Sphinx) -> dict[str, bool]:
    """Check after all pages have been read."""
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
