"""A user's own images: a folder with one sub-folder per class, a table, an .npz file, or a folder of shards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tigranet.data.augment.rigid import Isometry
from tigranet.data.class_names import check_class_names
from tigranet.data.csv_index import index_csv
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.data.find_images import unusable_reason
from tigranet.data.folder_index import index_folder
from tigranet.data.image_cache import decode_images
from tigranet.data.image_colors import files_have_colors
from tigranet.data.leakage import exclude_duplicate_images
from tigranet.data.letterbox import MAX_DEFAULT_SIZE, SizeLimit, UnreadableFile, default_file_size
from tigranet.data.mapped_images import empty_images
from tigranet.data.npz_data import read_npz_images
from tigranet.data.shards.shard_files import is_shard_folder
from tigranet.data.shards.shard_folder import open_shards
from tigranet.data.shards.stored_images import StoredImages
from tigranet.data.splits import draw, split

TABLE_SUFFIXES = (".csv", ".tsv")
COPIED_TOGETHER = 64
"""Number of images that are copied at a time, so that the copy takes little memory."""


@dataclass(frozen=True)
class UserImages:
    """All readable images of a folder, a table, an .npz file or shards."""

    class_names: tuple[str, ...]
    """Name of each class."""
    images: LabelledImages
    """The images at one square size, with their labels."""
    parts: tuple[str, ...]
    """'train', 'validation' or 'test'; '' if the data do not assign a part."""
    groups: tuple[str, ...] | None = None
    """Names of groups, if they were asked for."""
    paths: tuple[Path, ...] | None = None
    """Path of each image; None for an .npz file and for shards."""
    unreadable: tuple[UnreadableFile, ...] = ()
    """Files that cannot be read, with the reasons."""
    repeated_rows: int = 0
    """Number of rows of a table that repeat an earlier row, and are not among the images."""


def is_user_data(path: Path) -> bool:
    """Whether a path is of a kind that :func:`load_user_data` reads: a folder, a table or an .npz file.

    Args:
        path: The path. A file need not exist: only its suffix is examined.

    Returns:
        True for folders and supported suffixes.
    """
    return path.is_dir() or path.suffix.lower() in (*TABLE_SUFFIXES, ".npz")


def load_user_data(
    path: Path,
    seed: int = 0,
    size: int | None = None,
    color: bool | None = False,
    group: str | None = None,
    train_images: int | None = None,
    step: Callable[[], None] = lambda: None,
    max_size: SizeLimit = MAX_DEFAULT_SIZE,
) -> tuple[DataSet, list[UnreadableFile]]:
    """Load a folder, a table, an .npz file or shards as a data set.

    Images are brought to one square size (see :func:`~tigranet.data.letterbox.letterbox`). Images that occur more than
    once are counted and left out of the test where necessary (see :mod:`~tigranet.data.duplicates`).

    If the data do not assign parts, 15 % of each class are drawn for validation and 15 % for testing; or, with
    ``train_images``, that number is drawn for training and all others are for testing. If the data assign a training
    part but no validation part, 15 % of the training images are drawn for validation. If they assign no test part,
    there are no test images, and ``DataSet.test`` is empty.

    Args:
        path: A folder (see :mod:`~tigranet.data.folder_index`), a table (see :mod:`~tigranet.data.csv_index`), an
            .npz file (see :mod:`~tigranet.data.npz_data`), or a folder of shards, whose images stay in their files (see
            :mod:`~tigranet.data.shards.stored_images`).
        seed: Seed of the random split.
        size: Side length of the images in pixels, or None for the median of their longer sides, at most ``max_size``.
        color: Keep all channels instead of the luminance. Grey images among images of three channels are repeated in
            three channels. None keeps them if the images have colours, see :mod:`~tigranet.data.image_colors`.
        group: How to find the group of an image: a regular expression for a folder, the name of a column for a table,
            or of an array for an .npz file. Images of one group are never in different parts.
        train_images: Number of training images.
        step: Called after each file that is decoded.
        max_size: Largest side length that is chosen if ``size`` is None.

    Returns:
        The data set, and the files that cannot be read.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If the images cannot be used for training. The message says what is wrong and how to correct it.
    """
    everything = read_user_images(path, size, color, group, step, max_size)
    class_names, images, parts = everything.class_names, everything.images, everything.parts
    _check_training_images(path, class_names, images.labels, parts)
    indices = _assign_parts(images.labels, class_names, parts, everything.groups, seed, train_images)
    paths = everything.paths
    indices, duplicates = exclude_duplicate_images(path, images, indices, paths, everything.repeated_rows)
    files = None if paths is None else tuple(str(paths[position]) for position in indices[2].tolist())
    train, validation, test = (_take(images, part) for part in indices)
    name = path.resolve().name if path.is_dir() else path.stem
    test_motion = Isometry(rotated=True, padding="reflection")  # photographs fill their frame
    groups = everything.groups
    data = DataSet(
        name,
        class_names,
        train,
        validation,
        test,
        test_motion,
        files,
        indices[2],
        duplicates,
        is_split_at_random="" in parts and train_images is None,
        groups=None if groups is None else _groups_of_parts(groups, indices),
    )
    return data, list(everything.unreadable)


def _groups_of_parts(
    groups: tuple[str, ...], indices: list[Tensor]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    train, validation, test = (tuple(groups[position] for position in part.tolist()) for part in indices)
    return train, validation, test


def read_user_images(
    path: Path,
    size: int | None = None,
    color: bool | None = False,
    group: str | None = None,
    step: Callable[[], None] = lambda: None,
    max_size: SizeLimit = MAX_DEFAULT_SIZE,
) -> UserImages:
    """Read all images of a folder, a table, an .npz file or shards, whatever part they are in.

    Args:
        path: A folder, a table, an .npz file or shards, as for :func:`load_user_data`.
        size: Side length of the images in pixels, or None for the median of their longer sides, at most ``max_size``.
        color: Keep all channels instead of the luminance, as for :func:`load_user_data`.
        group: How to find the group of an image, as for :func:`load_user_data`.
        step: Called after each file that is decoded.
        max_size: Largest side length that is chosen if ``size`` is None.

    Returns:
        The images with their labels, parts and groups.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If there are no labelled images in it. The message says what is wrong and how to correct it.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder '{path}'")
    if not path.is_dir() and not path.is_file():  # opening a named pipe would block
        raise ValueError(f"'{path}' {unusable_reason(path)}: give a folder, a table or an .npz file")
    if path.suffix.lower() == ".npz":
        arrays = read_npz_images(path, size, color, group, max_size)
        check_class_names(arrays.class_names, path)
        images = LabelledImages(arrays.images, torch.tensor(arrays.labels))
        return UserImages(arrays.class_names, images, arrays.parts, arrays.groups)
    if is_shard_folder(path):
        return _open_shards(path, size, bool(color), group)
    index = index_folder(path, group) if path.is_dir() else index_csv(path, group)
    check_class_names(index.class_names, path)
    side = size or default_file_size(index.paths, max_size)
    pixels, readable, unreadable = _decode(index.paths, side, color, step)
    positions = readable.tolist()
    return UserImages(
        index.class_names,
        LabelledImages(pixels, torch.tensor(index.labels)[readable]),
        tuple(index.parts[position] for position in positions),
        None if index.groups is None else tuple(index.groups[position] for position in positions),
        tuple(index.paths[position] for position in positions),
        (*index.skipped, *unreadable),
        index.repeated_rows,
    )


def _decode(
    paths: Sequence[Path], side: int, color: bool | None, step: Callable[[], None]
) -> tuple[Tensor, Tensor, list[UnreadableFile]]:
    """Decode files, with their colours if they have any and ``color`` is None."""
    if color is not None or not files_have_colors(paths):
        return decode_images(paths, side, bool(color), step)
    try:
        return decode_images(paths, side, True, step)
    except ValueError:  # a file that was not examined has another number of channels
        return decode_images(paths, side, False, step)


def _open_shards(path: Path, size: int | None, color: bool, group: str | None) -> UserImages:
    shards = open_shards(path, size, color, group)
    check_class_names(shards.manifest.class_names, path)
    return UserImages(
        shards.manifest.class_names,
        shards.images,
        shards.parts,
        shards.groups,
        unreadable=tuple(UnreadableFile(Path(name), reason) for name, reason in shards.manifest.unreadable),
        repeated_rows=shards.manifest.repeated_rows,
    )


def _assign_parts(
    labels: Tensor,
    class_names: tuple[str, ...],
    parts: tuple[str, ...],
    groups: tuple[str, ...] | None,
    seed: int,
    train_images: int | None,
) -> list[Tensor]:
    """Return the positions of the training, validation and test images."""
    members = {name: torch.tensor([place for place, part in enumerate(parts) if part == name]) for name in set(parts)}
    if train_images is not None:
        if set(members) != {""} or groups is not None:
            raise ValueError(
                "a number of training images can be drawn only from images without parts and groups: "
                "leave out the number of training images, or the parts and groups"
            )
        train, test = draw(labels, class_names, seed, train_images)
        return [train, train[:0], test]
    if "" in members:
        return split(labels, class_names, seed, 2, groups)
    train = members["train"]
    _check_groups(parts, groups)
    if "validation" not in members:
        training_groups = None if groups is None else [groups[position] for position in train.tolist()]
        remaining, held_out = split(labels[train], class_names, seed, 1, training_groups)
        train, members["validation"] = train[remaining], train[held_out]
    return [train, members["validation"], members.get("test", train[:0])]


def _take(images: LabelledImages, indices: Tensor) -> LabelledImages:
    """Select images: in shards, in memory or, if they are too large, in a temporary file that is mapped into memory."""
    if isinstance(images.images, StoredImages):
        return LabelledImages(images.images.select_rows(indices), images.labels[indices])
    pixels = empty_images(len(indices), *images.images.shape[1:])
    for rows in torch.arange(len(indices)).split(COPIED_TOGETHER):
        pixels[rows] = images.images[indices[rows]]
    return LabelledImages(pixels, images.labels[indices])


def _check_training_images(path: Path, class_names: tuple[str, ...], labels: Tensor, parts: tuple[str, ...]) -> None:
    """Check that every class has at least one readable training image."""
    part_names = set(parts)
    if not part_names & {"", "train"}:
        raise ValueError(
            f"'{path}' has no readable image in the part train, only in {' and '.join(sorted(part_names))}: "
            "assign some images to train, or leave out the parts to have them drawn at random"
        )
    training_labels = {label for label, part in zip(labels.tolist(), parts, strict=True) if part in ("", "train")}
    for label, name in enumerate(class_names):
        if label not in training_labels:
            where = " in the part train" if "train" in part_names else ""
            raise ValueError(
                f"the class '{name}' of '{path}' has no readable image{where}: add images, or remove the class"
            )


def _check_groups(parts: tuple[str, ...], groups: tuple[str, ...] | None) -> None:
    """Check that the parts in the data do not separate a group."""
    part_of_group: dict[str, str] = {}
    if groups is None:
        return
    for part, group in zip(parts, groups, strict=True):
        if part_of_group.setdefault(group, part) != part:
            raise ValueError(
                f"the group '{group}' is in two parts, {part_of_group[group]} and {part}: put it into one of them"
            )
