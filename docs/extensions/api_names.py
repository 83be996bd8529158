"""Signatures of constructors, and links from short names in docstrings to the pages that describe them."""

import inspect
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.inspect import stringify_signature
from sphinx.util.nodes import make_refnode


def constructor_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str, None] | None:
    """Return the signature of ``__init__`` for classes whose base class has a ``__new__`` with any arguments."""
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    parameters = list(inspect.signature(value.__init__).parameters.values())[1:]
    return stringify_signature(inspect.Signature(parameters), show_annotation=False), None


def resolve_short_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Node | None:
    """Link a name such as ``DynamicPool`` to the one object of this name, if it is described somewhere."""
    if node.get("refdomain") != "py" or "reftarget" not in node:
        return None
    domain = env.domains.python_domain
    name = node["reftarget"].rpartition(".")[2]
    found = [(path, entry) for path, entry in domain.objects.items() if path.rpartition(".")[2] == name]
    if len(found) != 1:
        return None
    (path, entry) = found[0]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, path)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both to Sphinx."""
    app.connect("autodoc-process-signature", constructor_signature)
    app.connect("missing-reference", resolve_short_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
