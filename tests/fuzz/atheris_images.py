"""Fuzz ``read_image`` with atheris, led by the coverage of the Python decoders: ``python -m fuzz.atheris_images``.

All arguments go to libFuzzer: folders with files to start from, ``-max_total_time``, ``-artifact_prefix`` and so on.
"""

import sys


def main() -> None:
    """Run until the time is over or a check fails."""
    import atheris

    with atheris.instrument_imports(include=["tifffile", "PIL", "tigranet.data"]):
        from fuzz.image_target import check_image
    atheris.Setup(sys.argv, check_image)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
