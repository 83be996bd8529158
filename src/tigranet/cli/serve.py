"""``tigranet serve``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tigranet.cli.options import Precision, Unknown, global_options
from tigranet.cli.output import progress_console

LIMITS_PANEL = "Limits"
"""Heading in the help."""


def _limit(help: str, **settings: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=LIMITS_PANEL, **settings)


def serve(
    models: Annotated[
        list[str], typer.Argument(help="Folders of saved models, or NAME=FOLDER to serve one by another name.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines connect.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Require the bearer token in this file for every request.", readable=False),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes that answer requests.")] = 1,
    reject: Annotated[float, typer.Option(help="Predict 'unknown' below this probability.")] = 0.0,
    unknown: Unknown = "auto",
    precision: Precision = "32",
    max_body: Annotated[int, _limit("Largest body of a request in MiB.", min=1, max=1024)] = 16,
    max_pixels: Annotated[int, _limit("Largest number of pixels of an image.", min=1, max=64_000_000)] = 64_000_000,
    max_images: Annotated[int, _limit("Largest number of images in a request.", min=1, max=4096)] = 64,
    max_requests: Annotated[int, _limit("Largest number of requests in work; others are refused.", min=1)] = 32,
    timeout: Annotated[float, _limit("Seconds for a request.", min=0.1)] = 30.0,
) -> None:
    """Show a web page and answer requests over HTTP, by the Open Inference Protocol, until Ctrl-C."""
    try:
        from tigranet.serving.server import serve as run_server
    except ModuleNotFoundError as error:
        missing = "the server needs packages that are not installed"
        raise ModuleNotFoundError(f"{missing} ({error.name}): pip install 'tigranet[serve]'") from None
    from tigranet.serving.access import is_loopback, read_token
    from tigranet.serving.limits import ServerLimits
    from tigranet.serving.model_names import name_models

    paths_by_name = name_models(models)
    token = None if token_file is None else read_token(token_file)
    if token is None and not is_loopback(host):
        warning = f"warning: everyone who can reach {host} can use this server: give --token-file to require a token"
        progress_console().print(warning, markup=False, soft_wrap=True)
    limits = ServerLimits(
        body_bytes=max_body * 2**20,
        pixels=max_pixels,
        images=max_images,
        concurrent_requests=max_requests,
        request_seconds=timeout,
    )

    def print_page(url: str) -> None:
        progress_console().print(f"web page, once the models are loaded: {url}", markup=False, soft_wrap=True)

    run_server(
        paths_by_name,
        host=host,
        port=port,
        token=token,
        device=global_options().device,
        precision=precision,
        reject=reject,
        unknown=unknown,
        limits=limits,
        workers=workers,
        on_start=print_page,
    )
