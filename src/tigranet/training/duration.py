"""Durations in words. Lightning, which takes seconds to import, is not needed for them."""


def describe_duration(seconds: float) -> str:
    """Describe an approximate duration.

    Args:
        seconds: The duration.

    Returns:
        A phrase.

    Example:
        >>> describe_duration(8.0), describe_duration(200.0), describe_duration(9000.0)
        ('about 8 s', 'about 3 min', 'about 2.5 h')
    """
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 90 * 60 else f"about {seconds / 3600:.1f} h"
