"""Checks of class names: two names that a reader cannot tell apart are one class by mistake."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

MAX_LISTED_NAMES = 10
"""Messages list at most this many names."""


def check_class_names(names: Sequence[str], source: Path) -> None:
    """Check that no two classes have names that look the same.

    Names look the same if they are equal except for white space around them and for the Unicode normalisation: a
    letter with an accent is one character on some systems and two on others.

    Args:
        names: Names of the classes.
        source: Where they come from, for the error message.

    Raises:
        ValueError: If two names look the same.

    Example:
        >>> check_class_names(["cat", "Cat", "dog"], Path("photos"))
        >>> check_class_names(["cat", "cat ", "dog"], Path("photos"))
        Traceback (most recent call last):
        ValueError: two classes of 'photos' have the same name, 'cat' and 'cat ': give all images of a class one name
    """
    first_spellings: dict[str, str] = {}
    for name in names:
        key = unicodedata.normalize("NFC", name).strip()
        if key in first_spellings:
            other = first_spellings[key]
            # Names of the same characters in different normal forms print alike, so their code points are shown.
            same_characters = unicodedata.normalize("NFC", other) == unicodedata.normalize("NFC", name)
            first, second = map(ascii if same_characters else repr, (other, name))
            raise ValueError(
                f"two classes of '{source}' have the same name, {first} and {second}: "
                "give all images of a class one name"
            )
        first_spellings[key] = name


def names_that_differ_by_case(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Find names that are equal except for upper and lower case.

    Such names may be intended, as for the letters a and A, but they are one folder on some file systems.

    Args:
        names: Names of the classes.

    Returns:
        The names that are equal except for case, in one tuple for each distinct name.

    Example:
        >>> names_that_differ_by_case(["Cat", "cat", "dog"])
        [('Cat', 'cat')]
    """
    spellings: dict[str, list[str]] = {}
    for name in names:
        spellings.setdefault(unicodedata.normalize("NFC", name).casefold(), []).append(name)
    return [tuple(alike) for alike in spellings.values() if len(alike) > 1]


def list_names(names: Sequence[str]) -> str:
    """Return names in quotes for a message, with control characters escaped; of many names, the first ones.

    Args:
        names: The names.

    Returns:
        The names, separated by commas.

    Example:
        >>> list_names(["a", "b"]), list_names([str(number) for number in range(600)])[-21:]
        ("'a', 'b'", "'8', '9' and 590 more")
    """
    listed = ", ".join(map(repr, names[:MAX_LISTED_NAMES]))
    return f"{listed} and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else listed
