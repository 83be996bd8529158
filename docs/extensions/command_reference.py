"""The directive ``command-reference``: every command of the command line with its arguments and options.

It reads the Typer application itself, so the page cannot differ from ``tigranet --help``.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_id

from tigranet.cli.app import app as application

TYPE_NAMES = {int: "INTEGER", float: "NUMBER", Path: "PATH"}
"""How the types of option values are called. All others are text."""


class CommandReference(SphinxDirective):
    """Describe all commands of the application, one section each."""

    def run(self) -> list[nodes.Node]:
        """Return one section per command."""
        group = typer.main.get_command(application)
        sections = [self._section("tigranet", group)]
        for path, command in _leaves("tigranet", group):
            sections.append(self._section(path, command))
        return sections

    def _section(self, path: str, command: Any) -> nodes.section:
        title = "Options of all commands" if path == "tigranet" else path
        section = nodes.section(ids=[make_id(self.env, self.state.document, "", path)], names=[path])
        section += nodes.title("", title)
        if path != "tigranet":
            usage = f"{path} {_usage(command)}"
            section += nodes.literal_block(usage, usage, language="text")
            for paragraph in f"{command.help or ''}\n\n{command.epilog or ''}".strip().split("\n\n"):
                section += nodes.paragraph("", "", *_inline(" ".join(paragraph.split())))
        panels: dict[str, list[Any]] = {}
        for parameter in command.params:
            if not getattr(parameter, "hidden", False):
                panels.setdefault(_panel(parameter), []).append(parameter)
        for panel, parameters in panels.items():
            section += nodes.rubric("", panel)
            section += _table(parameters)
        return section


def _leaves(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    """Yield the path and the command of every command that is not a group of others."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _leaves(f"{path} {name}", command)
        else:
            yield f"{path} {name}", command


def _is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


def _panel(parameter: Any) -> str:
    return getattr(parameter, "rich_help_panel", None) or ("Arguments" if _is_argument(parameter) else "Options")


def _usage(command: Any) -> str:
    """Return what follows the name of a command: its arguments, and that it has options."""
    words = []
    for parameter in command.params:
        if _is_argument(parameter):
            name = _names(parameter)[0] + ("..." if parameter.nargs == -1 else "")
            words.append(name if parameter.required else f"[{name}]")
        elif parameter.required:
            words.append(f"{_names(parameter)[0]} {_value(parameter)}")
    return " ".join([*words, "[OPTIONS]"])


def _names(parameter: Any) -> list[str]:
    if _is_argument(parameter):
        return [parameter.name.upper()]
    return ["/".join([*parameter.opts, *parameter.secondary_opts])] if parameter.secondary_opts else parameter.opts


def _value(parameter: Any) -> str:
    """Return the kind of value that an option takes: its choices, or the name of its type."""
    if _is_argument(parameter) or parameter.is_flag:
        return ""
    kind = parameter.type_descriptor.annotation
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    return TYPE_NAMES.get(kind, "TEXT")


def _default(parameter: Any) -> str:
    shown = getattr(parameter, "show_default", False)
    if isinstance(shown, str):
        return shown
    value = parameter.default
    if not shown or value is None or value == () or (value is False) or callable(value) or parameter.required:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(getattr(value, "value", value))


def _table(parameters: list[Any]) -> nodes.table:
    """Return a table of names and descriptions, with the defaults."""
    table, group, body = nodes.table(classes=["options"]), nodes.tgroup(cols=2), nodes.tbody()
    group += [nodes.colspec(colwidth=width) for width in (30, 70)]
    for parameter in parameters:
        name = nodes.paragraph()
        for position, text in enumerate(_names(parameter)):
            name += [nodes.Text(", ")] if position else []
            name += nodes.literal("", text)
        if value := _value(parameter):
            name += [nodes.Text(" "), nodes.emphasis("", value)]
        description = nodes.paragraph("", "", *_inline(" ".join((parameter.help or "").split())))
        notes = ["required"] if parameter.required else []
        notes += [f"default: {default}"] if (default := _default(parameter)) else []
        if notes:
            description += nodes.Text(" " if description.children else "")
            description += nodes.inline("", f"({'; '.join(notes)})", classes=["default"])
        row = nodes.row()
        row += [nodes.entry("", name), nodes.entry("", description)]
        body += row
    group += body
    table += group
    return table


def _inline(text: str) -> list[nodes.Node]:
    """Return text in which options, and words between backticks, are literals."""
    parts = re.split(r"``?(.+?)``?|(?<![\w-])(--[a-z][a-z-]*)", text)
    return [
        nodes.Text(part) if number % 3 == 0 else nodes.literal("", part) for number, part in enumerate(parts) if part
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
