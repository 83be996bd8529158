"""MNIST from its public mirrors."""

from pathlib import Path

import pooch
from rich.console import Console

from tigranet.data.sources.mnist import PARTS

MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
MD5 = dict(
    zip(
        PARTS,
        (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
        strict=True,
    )
)
"""Of the four packed files."""


def fetch_mnist(folder: Path, console: Console, mirrors: tuple[str, ...] = MIRRORS) -> list[Path]:
    """The four packed idx files in ``folder``: a good one that is there is kept, the others are downloaded, each from
    the first mirror that has it. A file appears under its name only when it is whole and its checksum is right."""
    pooch.get_logger().setLevel("WARNING")
    paths = []
    for part, md5 in MD5.items():
        reasons = []
        for mirror in mirrors:
            try:
                with console.status(f"{part}.gz from {mirror}"):
                    paths.append(Path(pooch.retrieve(f"{mirror}{part}.gz", f"md5:{md5}", f"{part}.gz", folder)))
                break
            except (OSError, ValueError) as error:  # what requests raises is an OSError
                reasons.append(f"{mirror}: {str(error).splitlines()[0][:120]}")
        else:
            raise OSError(
                f"no mirror gave {part}.gz to '{folder}' (what was fetched is kept; try again later): "
                + "; ".join(reasons)
            )
    return paths
