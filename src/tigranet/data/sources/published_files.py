"""Data sets that are stored as one .npz file, or as the folder of image files that their authors published."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from tigranet.data.sources.array_checks import check_images


@dataclass(frozen=True)
class PublishedFiles:
    """Where the files of a data set are, below a data folder."""

    title: str
    """Name of the data set in error messages."""
    npz_name: str
    """Name of the .npz file."""
    pattern: str
    """Glob pattern of the original image files, relative to the data folder."""
    file_name: re.Pattern[str]
    """Names of the original image files. Other files that match ``pattern`` are skipped."""
    folder_example: str
    """A usual name for the folder of original files."""

    def find(self, folder: Path) -> list[Path]:
        """Find the files in a data folder.

        Args:
            folder: The data folder.

        Returns:
            The .npz file alone if it exists, else the original image files sorted by path, which may be none.
        """
        if (folder / self.npz_name).is_file():
            return [folder / self.npz_name]
        return sorted(path for path in folder.glob(self.pattern) if self.file_name.fullmatch(path.name))

    def require(self, folder: Path) -> list[Path]:
        """Find the files in a data folder that must have them.

        Args:
            folder: The data folder.

        Returns:
            The files, as :meth:`find` returns them.

        Raises:
            FileNotFoundError: If there are none.
        """
        files = self.find(folder)
        if not files:
            raise FileNotFoundError(
                f"there is no {self.title} in '{folder}': put {self.npz_name} there, or the folder of its original "
                f"files (such as {self.folder_example}), or set TIGRANET_DATA to another folder"
            )
        return files

    def parse_name(self, path: Path) -> tuple[str, ...]:
        """Split the name of an original image file.

        Args:
            path: One of the files that :meth:`find` returns.

        Returns:
            The groups of the regular expression ``file_name``.
        """
        match = self.file_name.fullmatch(path.name)
        assert match is not None
        return match.groups()

    def check_images(self, file: Path, images: np.ndarray, shape: tuple[int, ...]) -> None:
        """Check the type and shape of the images.

        Args:
            file: The file that they come from, for the error message.
            images: The images.
            shape: Expected shape.

        Raises:
            ValueError: If the images are not bytes of this shape.
        """
        check_images(self.title, file, images, shape)


def read_resized(files: Sequence[Path], mode: str, size: int, resampling: int) -> UInt8[np.ndarray, "..."]:
    """Read image files and resize them to a square.

    Args:
        files: Paths of the files.
        mode: Mode of Pillow: "L" for grey, "RGB" for colour.
        size: Side length in pixels.
        resampling: Filter of Pillow (``PIL.Image.Resampling``).

    Returns:
        All images in one array.

    Shape:
        (files, size, size) for grey, (files, size, size, 3) for colour.
    """
    from PIL import Image

    from tigranet.data.pillow_pixels import FORMATS

    images = []
    for path in files:
        with Image.open(path, formats=FORMATS) as image:
            images.append(np.asarray(image.convert(mode).resize((size, size), resampling)))
    return np.stack(images)
