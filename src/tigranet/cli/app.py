"""The command-line application: its commands, the global options, and how errors are shown."""

import io
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from tigranet.cli.angles import angles
from tigranet.cli.bench import bench
from tigranet.cli.data import check, fetch, list_data
from tigranet.cli.evaluate import evaluate
from tigranet.cli.features import features
from tigranet.cli.figures import figures
from tigranet.cli.options import GlobalOptions, set_global_options
from tigranet.cli.predict import predict
from tigranet.cli.report import report
from tigranet.cli.reproduce import reproduce
from tigranet.cli.train import train

app = typer.Typer(
    help="Image classification that does not depend on how the image is rotated or shifted.",
    epilog="--device and --debug may also be written after the command.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The named data sets and where they come from.", no_args_is_help=True)

for command, example in (
    (train, "tigranet train mnist-012 -o model/"),
    (evaluate, "tigranet evaluate model/ mnist-012"),
    (predict, "tigranet predict model/ photos/ --csv answers.csv"),
    (features, "tigranet features model/ photos/ --csv features.csv"),
    (report, "tigranet report model/ mnist-012 -o report/"),
    (figures, "tigranet figures model/ mnist-012 --rivals -o figures/"),
    (angles, "tigranet angles mnist-012 model/ paper-mnist-rot oriented-small -o angles/"),
    (reproduce, "tigranet reproduce table2 --quick"),
    (bench, "tigranet bench oriented --size 28"),
):
    app.command(epilog=f"Example: {example}")(command)

app.add_typer(data_app, name="data")
data_app.command("list", epilog="Example: tigranet data list")(list_data)
data_app.command(epilog="Example: tigranet data fetch --data-dir data/")(fetch)
data_app.command(epilog="Example: tigranet data check --data-dir data/")(check)


@app.callback()
def read_global_options(
    device: Annotated[
        str, typer.Option(help="Where to compute: auto, cpu, cuda, cuda:N or mps. auto is a CUDA GPU if there is one.")
    ] = "auto",
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
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
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # file names are bytes, and not always UTF-8
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", module="PIL")  # what cannot be read is listed with the reason
    arguments = global_options_first(sys.argv[1:])
    try:
        app(arguments, prog_name="tigranet")
    except KeyboardInterrupt:
        print("tigranet: stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if "--debug" in arguments:
            raise
        kind = "" if isinstance(error, ValueError | TypeError | OSError | ImportError) else f"{type(error).__name__}: "
        print(f"tigranet: {kind}{error}", *getattr(error, "__notes__", ()), sep="\n  ", file=sys.stderr)
        sys.exit(1)
