"""Download MNIST from its public mirrors."""

from pathlib import Path

import pooch
from rich.console import Console

from tigranet.data.sources.mnist import IDX_NAMES

MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
MD5 = dict(
    zip(
        IDX_NAMES,
        (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
        strict=True,
    )
)
"""Checksums of the four compressed files."""


def fetch_mnist(folder: Path, console: Console, mirrors: tuple[str, ...] = MIRRORS) -> list[Path]:
    """Download the four compressed idx files of MNIST.

    A file that exists with the right checksum is kept. The others are downloaded from the first mirror that has them,
    and appear under their name only when they are complete and their checksum is right.

    Args:
        folder: Folder for the files. It is created if necessary.
        console: Where the progress is shown.
        mirrors: Base URLs, tried in order.

    Returns:
        Paths of the four files.

    Raises:
        OSError: If a file cannot be downloaded from any mirror. The message has the reason for each mirror.
    """
    pooch.get_logger().setLevel("WARNING")
    paths = []
    for name, md5 in MD5.items():
        reasons = []
        for mirror in mirrors:
            try:
                with console.status(f"{name}.gz from {mirror}"):
                    paths.append(Path(pooch.retrieve(f"{mirror}{name}.gz", f"md5:{md5}", f"{name}.gz", folder)))
                break
            except (OSError, ValueError) as error:  # the exceptions of requests are OSErrors
                reasons.append(f"{mirror}: {str(error).splitlines()[0][:120]}")
        else:
            raise OSError(
                f"{name}.gz could not be downloaded to '{folder}' (complete files are kept; try again later): "
                + "; ".join(reasons)
            )
    return paths
