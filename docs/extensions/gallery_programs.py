"""Arguments and pictures of the programs in ``examples/``, for the gallery.

Every program runs as on the command line, in a temporary folder that holds a folder of images and a trained network.
"""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ARGUMENTS = {
    "filters_over_the_spectrum": ["filters.png"],
    "oriented_pictures": ["pictures"],
    "sort_into_folders": ["model", "photos", "sorted"],
    "train_on_a_folder": ["photos", "trained", "150"],
}
"""Command-line arguments of each program, all except numbers being paths in the temporary folder."""
PATTERN = rf"[\\/]({'|'.join(ARGUMENTS)})\.py$"
"""The programs that run. Of the others, the gallery shows the code."""


@cache
def inputs() -> Path:
    """Return the temporary folder, filled with 100 handwritten digits in one folder per class and a network."""
    from PIL import Image

    from tigranet import TIGraNet
    from tigranet.data import load

    folder = Path(tempfile.mkdtemp(prefix="tigranet-gallery-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for number, (image, label) in enumerate(zip(*load("mnist-012").test[:2], strict=True)):
        photo = folder / "photos" / f"digit {label}" / f"{number:03d}.png"
        photo.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image[0] * 255).byte().numpy()).save(photo)
    TIGraNet.from_pretrained("oriented-mnist-012").save_pretrained(folder / "model")
    return folder


class Arguments:
    """Give a program its command-line arguments."""

    def __call__(self, gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
        """Return the arguments without the name of the program."""
        arguments = ARGUMENTS[Path(script_vars["src_file"]).stem]
        return [text if text.isdigit() else str(inputs() / text) for text in arguments]

    def __repr__(self) -> str:
        return "Arguments()"  # the same in every build, so that pages are not built again


class WrittenPictures:
    """Show the pictures that a program has written."""

    def __call__(self, block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
        """Move new PNG files to the page and return the text that shows them."""
        from sphinx_gallery.scrapers import figure_rst

        folder, moved = inputs(), []
        for picture in sorted([*folder.glob("*.png"), *folder.glob("pictures/*.png")]):
            target = next(block_vars["image_path_iterator"])
            shutil.move(picture, target)
            moved.append(target)
        return figure_rst(moved, gallery_conf["src_dir"])

    def __repr__(self) -> str:
        return "WrittenPictures()"


def leave_out_folders(app: "Sphinx") -> None:
    """Let the gallery introduce folders by rst files only: README.md files of other examples are pages of their own."""
    app.config.sphinx_gallery_conf["source_suffix"] = {".rst": "restructuredtext"}


def setup(app: "Sphinx") -> dict[str, bool]:
    """Connect to Sphinx, before the gallery is written."""
    app.connect("builder-inited", leave_out_folders, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
