"""Check that the API reference describes every public name, whatever module it is described under."""

import inspect
import pkgutil
from importlib import import_module
from typing import Any

import typer
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

import tigranet.workflows
from tigranet.cli.app import app as application

MODULES = ("tigranet", "tigranet.layers", "tigranet.graphs", "tigranet.serving")
"""Modules that list their public names in ``__all__``."""
OTHER_WORKFLOWS = {"compare", "explain", "first_answer", "larger_network", "trained_model"}
"""Modules of ``tigranet.workflows`` that are public although no command has their name."""

logger = logging.getLogger(__name__)


def workflow_modules() -> list[str]:
    """Return the workflows that are called like a command, and the other public ones."""
    commands = typer.main.get_command(application).commands
    modules = {module.name for module in pkgutil.iter_modules(tigranet.workflows.__path__)}
    return [f"tigranet.workflows.{name}" for name in sorted(modules & commands.keys() | OTHER_WORKFLOWS)]


def public_objects() -> dict[str, Any]:
    """Return every public function, class and constant by one of its names."""
    objects = {f"{name}.{entry}": getattr(import_module(name), entry) for name in MODULES for entry in _all(name)}
    for name in ("tigranet.testing", *workflow_modules()):
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
