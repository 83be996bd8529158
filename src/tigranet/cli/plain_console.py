"""A console for text from users: class names, file names and messages are shown as they are."""

from typing import Any

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from tigranet.terminal_text import escape_control_characters, replace_unencodable


class PlainConsole(Console):
    """A console without markup and emoji codes, which writes out control characters and what the encoding lacks.

    Class names, file names and error messages may contain any of these. If nobody reads the output, the error is raised
    rather than ending the process.

    Args:
        **options: Arguments of :class:`rich.console.Console`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects, of which text is shown as it is.

        Args:
            *objects: Text, or anything else that rich prints.
            **options: Further arguments of :meth:`rich.console.Console.print`.
        """
        super().print(*map(self._plain, objects), **options)

    def status(self, status: Any, **options: Any) -> Status:
        """Show a text beside a spinner.

        Args:
            status: The text.
            **options: Further arguments of :meth:`rich.console.Console.status`.

        Returns:
            The status, a context manager.
        """
        if self.options.ascii_only:
            options.setdefault("spinner", "line")
        return super().status(Text(self._plain(status)) if isinstance(status, str) else status, **options)

    def on_broken_pipe(self) -> None:
        """Raise the error that nobody reads the output. Rich calls this method while it handles that error."""
        raise

    def print_table(self, table: Table) -> None:
        """Print a table of texts.

        Args:
            table: The table. Its title, the titles of its columns and its cells are texts.
        """
        plain = Table(title=self._plain(table.title), title_justify=table.title_justify)
        for column in table.columns:
            plain.add_column(self._plain(column.header), justify=column.justify, no_wrap=column.no_wrap)
        for row in zip(*(column.cells for column in table.columns), strict=True):
            plain.add_row(*map(self._plain, row))
        self.print(plain)

    def _plain(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return replace_unencodable(escape_control_characters(value), self.encoding)
