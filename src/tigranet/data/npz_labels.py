"""Labels, groups and class names from the arrays of an .npz file: text or finite numbers, and distinct names."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tigranet.data.class_names import check_class_names


def as_texts(values: np.ndarray, what: str) -> np.ndarray:
    """Return values as a flat array of text, integers, booleans or floating-point numbers.

    Args:
        values: Text, bytes or real numbers. Bytes are decoded as UTF-8.
        what: Name of the values, for messages.

    Returns:
        The values. Floating-point numbers that are all whole become integers.

    Raises:
        ValueError: If the values are of another type, are NaN or infinite, or are bytes that are not UTF-8.

    Example:
        >>> as_texts(np.array([b"cat", b"dog"]), "labels"), as_texts(np.array([1.0, 2.0]), "labels")
        (array(['cat', 'dog'], dtype='<U3'), array([1, 2]))
    """
    values = values.reshape(-1)
    kind = values.dtype.kind
    if kind == "S":
        try:
            return np.array([value.decode() for value in values.tolist()], dtype=str)
        except UnicodeDecodeError as error:
            raise ValueError(f"expected text in UTF-8 for {what}, got the bytes {error.object!r}") from None
    if kind not in "Uiufb":
        raise ValueError(f"expected text or real numbers for {what}, got the type {values.dtype}")
    if kind != "f":
        return values
    if not np.isfinite(values).all():
        position = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"expected finite numbers for {what}, got {values[position]} at position {position}")
    is_whole = (values == np.round(values)).all() and (np.abs(values) < 2**53).all()
    return values.astype(np.int64) if is_whole else values


def as_labels(arrays: Sequence[np.ndarray], file: Path) -> np.ndarray:
    """Return the labels of all parts in one array.

    Args:
        arrays: Labels of each part.
        file: Path of the file, for messages.

    Returns:
        Text or numbers.

    Raises:
        ValueError: If labels are of an unsupported type, or text in one part and numbers in another.
    """
    labels = [as_texts(array, f"the labels in '{file}'") for array in arrays]
    if len({array.dtype.kind == "U" for array in labels}) > 1:
        raise ValueError(f"expected labels of one kind in '{file}', got text in one part and numbers in another")
    return np.concatenate(labels)


def names_of_classes(classes: np.ndarray, names: np.ndarray | None, file: Path) -> tuple[str, ...]:
    """Return the names of the distinct labels: of integers, the names in the file if it has any.

    Args:
        classes: The distinct labels, in increasing order.
        names: The array with the names of the classes 0, 1, 2, ..., or None.
        file: Path of the file, for messages.

    Returns:
        One name per class.

    Raises:
        ValueError: If a label has no name, or two classes have the same name.
    """
    if names is None or classes.dtype.kind not in "iu":
        texts = classes.astype(str)
        check_class_names(texts.tolist(), file)
        return tuple(texts.tolist())
    texts = as_texts(names, f"the class names in '{file}'")
    if classes[0] < 0 or classes[-1] >= len(texts):
        raise ValueError(
            f"expected labels from 0 to {len(texts) - 1} for {len(texts)} class_names, got {classes[0]} to "
            f"{classes[-1]} in '{file}': count them from 0, or leave out class_names"
        )
    check_class_names(tuple(map(str, texts)), file)
    return tuple(str(texts[label]) for label in classes)
