"""``tigranet reproduce``."""

from pathlib import Path
from typing import Annotated

import typer

from tigranet.cli.options import MAX_SEED, DataDir, global_options, typed_command
from tigranet.cli.output import progress_console


def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            help="table2, table3, table4 or ablation, for the paper's network; oriented, oriented-ablation or few, for "
            "networks that are not in the paper; photographs, plankton, rotmnist or pyramid-ablation, for "
            "networks for larger images; or all."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="One seed, and smaller data sets in place of MNIST.")] = False,
    seed: Annotated[
        list[int] | None,
        typer.Option(min=0, max=MAX_SEED, help="Only this seed; may be repeated.", show_default="0 to 4, or 0 to 2"),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method or experiment; may be repeated.", show_default="all")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="Only this data set; may be repeated.", show_default="all")
    ] = None,
    row: Annotated[
        list[int] | None,
        typer.Option(help="Only the row of this number, see --list; may be repeated.", show_default="all"),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Number of epochs.", show_default="that of each experiment")
    ] = None,
    render_only: Annotated[
        bool, typer.Option("--render-only", help="Measure nothing; write the tables from the existing results.")
    ] = False,
    list_only: Annotated[
        bool, typer.Option("--list", help="Measure nothing; print the numbered rows and the seeds that are measured.")
    ] = False,
    networks: Annotated[
        Path | None,
        typer.Option(help="Save each trained TIGraNet to a sub-folder of this folder.", show_default="none is saved"),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Measure a table of the paper beside the paper's results, or one of ours. Existing results are kept.

    Every run becomes a line of a .jsonl file and a row of a .csv file; the table is a .md file, and few has a picture
    too, a .png and an .svg file. Several of these commands may write to the same folder at once, each with its own
    seeds, methods or rows. A run that diverges, or that needs a package that is not installed, does not stop the
    others; it is named at the end.
    """
    from tigranet.reproduction.reproduce import list_rows, records_path, select_experiments
    from tigranet.reproduction.reproduce import reproduce as reproduce_table
    from tigranet.reproduction.tables import TABLES

    console = progress_console()
    methods, data_sets = method or [], data or []
    names = [table]
    if table == "all":
        names = [name for name in TABLES if select_experiments(TABLES[name], methods, data_sets)]
        if render_only:
            names = [name for name in names if records_path(output, name, quick).exists()]
        names = names or list(TABLES)  # the first one explains what is wrong
    if row and table == "all":
        raise ValueError("--row needs one table, got all: rows are numbered in each table on its own")
    if list_only:
        for name in names:
            print(list_rows(name, output, quick=quick, epochs=epochs))
        return
    diverged: list[str] = []
    skipped: list[str] = []
    for name in names:
        result = reproduce_table(
            name,
            output,
            seeds=seed or None,
            quick=quick,
            epochs=epochs,
            data_dir=data_dir,
            methods=methods,
            data=data_sets,
            rows=row or (),
            measure=not render_only,
            networks=networks,
            device=global_options().device,
            command=typed_command(),
            console=console,
        )
        print(result.markdown)
        for path in result.pictures:
            console.print(f"picture: {path}", soft_wrap=True)
        diverged += result.diverged
        skipped += result.skipped
    if diverged or skipped:
        counts = ((len(diverged), "diverged"), (len(skipped), "need a package that is not installed"))
        reasons = " and ".join(f"{count} runs {what}" for count, what in counts if count)
        error = ValueError(f"{reasons}, and are in no table:")
        for run in (*diverged, *skipped):
            error.add_note(run)
        raise error
