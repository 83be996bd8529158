"""Positions of some of many images, for an examination that does not need all of them."""


def evenly_spaced(count: int, limit: int) -> list[int]:
    """Return the positions of at most ``limit`` images, at equal distances.

    Args:
        count: The number of all images.
        limit: Largest number of positions.

    Returns:
        Positions from 0, in increasing order.

    Example:
        >>> evenly_spaced(10, 3), evenly_spaced(2, 3)
        ([0, 3, 6], [0, 1])
    """
    examined = min(count, limit)
    return [number * count // examined for number in range(examined)]
