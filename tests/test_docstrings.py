"""Public functions describe their arguments and results; ruff checks that docstrings exist and their layout."""

import ast
from collections.abc import Iterator
from pathlib import Path

import tigranet

PACKAGE = Path(tigranet.__file__).parent
WITHOUT_ARGUMENTS = {"property", "cached_property", "override", "overload", "no_type_check"}
"""Decorators of functions whose summary says it all, and of compiled kernels, which only their operation calls."""


def public_functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the public functions and methods of a module, with their names."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield f"{prefix}{node.name}", node


def parameters(function: ast.FunctionDef) -> list[str]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [argument.arg for argument in arguments if argument.arg not in ("self", "cls") and argument.arg[0] != "_"]


def missing_sections(function: ast.FunctionDef) -> list[str]:
    docstring = ast.get_docstring(function) or ""
    if {ast.unparse(decorator) for decorator in function.decorator_list} & WITHOUT_ARGUMENTS or ", see " in docstring:
        return []
    missing = []
    if parameters(function) and "Args:" not in docstring:
        missing.append("Args")
    returns = "None" if function.returns is None else ast.unparse(function.returns)
    described = "Returns:" in docstring or "Yields:" in docstring or docstring.startswith("Return")
    if returns != "None" and not returns.startswith("Iterator[None]") and not described:
        missing.append("Returns")
    return missing


def test_public_functions_document_arguments_and_results():
    """Commands are an exception: their docstrings are the help texts, and every option has its own."""
    gaps = {
        f"{path.relative_to(PACKAGE)}: {name}": missing
        for path in sorted(PACKAGE.rglob("*.py"))
        if "cli" not in path.relative_to(PACKAGE).parts
        for name, function in public_functions(ast.parse(path.read_text()).body)
        if not name.endswith(".extra_repr") and (missing := missing_sections(function))
    }
    assert not gaps
