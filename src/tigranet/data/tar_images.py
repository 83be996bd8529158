"""Images in tar files, such as the shards of WebDataset, read one after the other without unpacking them."""

import os
import tarfile
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tigranet.data.image_content import ImageContent
from tigranet.data.image_errors import one_line
from tigranet.data.image_io import SUFFIXES
from tigranet.data.letterbox import ImageItem, UnreadableFile
from tigranet.data.packed_image import MAX_CONTENT_BYTES


class TarError(ValueError):
    """A tar file cannot be read from some place on. The message is the reason, without the name of the file."""


class TarRange(NamedTuple):
    """Images that follow each other in a tar file."""

    offset: int
    """Where the first of them begins, in bytes."""
    images: int
    """Number of images."""


def tar_ranges(file: BufferedReader, max_images: int) -> Iterator[TarRange]:
    """Divide the images of a tar file into ranges. Only the headers of its members are read.

    Args:
        file: The open file, which can be searched.
        max_images: Largest number of images in a range.

    Yields:
        The ranges, in order. All but the last have ``max_images`` images.

    Raises:
        TarError: After the last complete image, if the file is damaged from there on.
    """
    offset, images, failure = 0, 0, None
    try:
        for member in _image_members(file, 0):
            if images == max_images:
                yield TarRange(offset, images)
                images = 0
            if images == 0:
                offset = member.offset
            images += 1
    except TarError as error:
        failure = error
    if images:
        yield TarRange(offset, images)
    if failure is not None:
        raise failure


def tar_images(
    file: BufferedReader, name: str, offset: int = 0, images: int | None = None
) -> Iterator[tuple[str, ImageItem]]:
    """Read the images of a tar file.

    Args:
        file: The open file. It can be searched, at least forward.
        name: What the file is called in results.
        offset: Where to begin, as :func:`tar_ranges` says.
        images: Number of images to read, or None for all.

    Yields:
        For each image, in the order of the file, what it is called, which is ``NAME/MEMBER``, and the image or the
        reason why there is none.

    Raises:
        TarError: If the file is damaged, or has fewer images than ``images``.
    """
    count = 0
    if images == 0:
        return
    for member in _image_members(file, offset):
        called = f"{name}/{member.name}"
        if member.size > MAX_CONTENT_BYTES:
            yield called, UnreadableFile(Path(called), f"has {member.size:,} bytes, more than {MAX_CONTENT_BYTES:,}")
        else:
            file.seek(member.offset_data)
            content = file.read(member.size)
            if len(content) < member.size:
                raise TarError(f"ends in the middle of '{one_line(member.name)}'")
            yield called, ImageContent(called, content)
        count += 1
        if count == images:
            return
    if images is not None:
        raise TarError(f"has {count} images from byte {offset} on, expected {images}")


def _image_members(file: BufferedReader, offset: int) -> Iterator[tarfile.TarInfo]:
    """Return the members that are image files. As in a folder, hidden files and other suffixes are skipped."""
    file.seek(offset)
    try:
        with tarfile.TarFile(fileobj=file, errorlevel=1) as archive:
            while True:
                member = archive.next()
                if member is None:
                    return
                archive.members.clear()  # type: ignore[attr-defined]  # The list would grow with the file.
                if _is_image(member):
                    yield member
    except tarfile.TarError as error:
        raise TarError(f"cannot be read as a tar file: {one_line(str(error))}") from None


def _is_image(member: tarfile.TarInfo) -> bool:
    is_hidden = any(part.startswith(".") and part not in (".", "..") for part in PurePosixPath(member.name).parts)
    return member.isreg() and not is_hidden and os.path.splitext(member.name)[1].lower() in SUFFIXES
