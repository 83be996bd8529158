"""The command-line application: its commands, the global options, and how errors are shown."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tigranet import __version__
from tigranet.cli.angles import angles
from tigranet.cli.bench import bench
from tigranet.cli.calibrate import calibrate
from tigranet.cli.data import check, fetch, list_data
from tigranet.cli.evaluate import evaluate
from tigranet.cli.export import export
from tigranet.cli.features import features
from tigranet.cli.figures import figures
from tigranet.cli.options import GlobalOptions, set_global_options
from tigranet.cli.predict import predict
from tigranet.cli.report import report
from tigranet.cli.reproduce import reproduce
from tigranet.cli.serve import serve
from tigranet.cli.shard import shard
from tigranet.cli.streams import flush_results, prepared_streams
from tigranet.cli.suggest import suggest
from tigranet.cli.train import train
from tigranet.memory_limit import TooLittleMemoryError, describe_shortage, within_memory
from tigranet.terminal_text import escape_control_characters


class EscapingGroup(TyperGroup):
    """A group of commands whose usage errors, which quote what was typed, contain no control characters."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the options in front of the command.

        Args:
            *arguments: Arguments of the base class.
            **options: Arguments of the base class.

        Returns:
            The context of the base class.
        """
        with _escaped_usage_errors():
            return super().make_context(*arguments, **options)

    def invoke(self, context: Any) -> Any:
        """Parse the command and run it.

        Args:
            context: The context from :meth:`make_context`.

        Returns:
            The result of the command.
        """
        with _escaped_usage_errors():
            return super().invoke(context)


@contextmanager
def _escaped_usage_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "exit_code") and isinstance(message := getattr(error, "message", None), str):
            escaped = "\n".join(map(escape_control_characters, message.split("\n")))
            error.__dict__["message"] = escaped
        raise


app = typer.Typer(
    cls=EscapingGroup,
    help="Image classification that does not depend on how the image is rotated or shifted.",
    epilog="--device and --debug may also be written after the command.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The named data sets, and shards of your own images.", no_args_is_help=True)

for command, example in (
    (train, "tigranet train mnist-012 -o model/"),
    (evaluate, "tigranet evaluate model/ mnist-012"),
    (predict, "tigranet predict model/ photos/ --csv answers.csv"),
    (calibrate, "tigranet calibrate model/ mnist-012"),
    (features, "tigranet features model/ photos/ --csv features.csv"),
    (suggest, "tigranet suggest model/ unlabelled/ -o suggestions/ --train photos/"),
    (export, "tigranet export model/ -o model.onnx"),
    (serve, "tigranet serve model/ --port 8000"),
    (report, "tigranet report model/ mnist-012 -o report/"),
    (figures, "tigranet figures model/ mnist-012 --rivals -o figures/"),
    (angles, "tigranet angles mnist-012 model/ paper-mnist-rot oriented-small -o angles/"),
    (reproduce, "tigranet reproduce table2 --quick"),
    (bench, "tigranet bench oriented --size 28"),
):
    app.command(epilog=f"Example: {example}")(within_memory(command))

app.add_typer(data_app, name="data")
data_app.command("list", epilog="Example: tigranet data list")(list_data)
data_app.command(epilog="Example: tigranet data fetch --data-dir data/")(fetch)
data_app.command(epilog="Example: tigranet data check --data-dir data/")(check)
data_app.command(epilog="Example: tigranet data shard photos/ -o shards/")(shard)


def _print_version(is_asked: bool) -> bool:
    if is_asked:
        print(f"tigranet {__version__}")
        raise typer.Exit
    return is_asked


@app.callback()
def read_global_options(
    device: Annotated[
        str, typer.Option(help="Where to compute: auto, cpu, cuda, cuda:N or mps. auto is a CUDA GPU if there is one.")
    ] = "auto",
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Image classification that does not depend on how the image is rotated or shifted."""
    set_global_options(GlobalOptions(device))


def global_options_first(arguments: Sequence[str]) -> list[str]:
    """Move the global options in front of the command, so that they may be written anywhere before ``--``.

    Args:
        arguments: The arguments as they were typed.

    Returns:
        The same arguments in the order that the parser expects.

    Example:
        >>> global_options_first(["train", "photos/", "--device", "cpu", "--debug", "--devices", "2"])
        ['--device', 'cpu', '--debug', 'train', 'photos/', '--devices', '2']
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    moved: list[str] = []
    others: list[str] = []
    remaining = iter(arguments[:end])
    for argument in remaining:
        if argument == "--device":
            moved += [argument, *(value for value in [next(remaining, None)] if value is not None)]
        elif argument == "--debug" or argument.startswith("--device="):
            moved.append(argument)
        else:
            others.append(argument)
    return [*moved, *others, *arguments[end:]]


def main() -> None:
    """Run the command. An error is shown in one line, or with its traceback if ``--debug`` was given."""
    arguments = global_options_first(sys.argv[1:])
    with prepared_streams():
        try:
            try:
                app(arguments, prog_name="tigranet")
            finally:
                flush_results()  # an error that appears only now is an error of the command
        except BrokenPipeError:
            sys.exit(1)  # nobody reads the results any more, so nobody has to be told
        except Exception as error:
            if "--debug" in arguments:
                raise
            print(f"tigranet: {describe_error(error)}", file=sys.stderr)
            sys.exit(1)


def describe_error(error: Exception) -> str:
    r"""Return the message of an error in one line, and one more line for each note.

    Args:
        error: The error. The name of its type is added if the type is not one that the library raises on purpose.

    Returns:
        The message without control characters.

    Example:
        >>> describe_error(KeyError("a")), describe_error(ValueError("no class 'a\nb'"))
        ("KeyError: 'a'", "no class 'a\\nb'")
    """
    is_own_type = isinstance(error, ValueError | TypeError | OSError | ImportError | TooLittleMemoryError)
    kind = "" if is_own_type else f"{type(error).__name__}: "
    text = describe_shortage(error) or f"{kind}{error}"
    message = re.sub(r"\n\s+", " ", text)  # indented lines are the layout of some library's message
    return "\n  ".join(map(escape_control_characters, [message, *getattr(error, "__notes__", ())]))
