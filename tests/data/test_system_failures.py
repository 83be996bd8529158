import errno

import pytest

from tigranet.data.letterbox import TemporarilyUnreadableFile, UnreadableFile, read_letterboxed
from tigranet.data.system_failures import is_system_failure


def raised_while_handling(cause):
    """Return an error that hides the error which led to it, as the readers of images do."""
    try:
        try:
            raise cause
        except Exception:
            raise ValueError("cannot be decoded") from None
    except ValueError as error:
        return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.EIO, "Input/output error"), True),
        (MemoryError(), True),
        (OSError("image file is truncated"), False),
        (OSError(errno.EINVAL, "Invalid argument"), False),
        (SyntaxError("not a PNG file"), False),
        (ValueError("bad"), False),
    ],
)
def test_errors_of_the_system_are_told_from_those_of_the_content(error, expected):
    assert is_system_failure(error) is expected
    assert is_system_failure(raised_while_handling(error)) is expected
    assert is_system_failure(raised_while_handling(raised_while_handling(error))) is expected


def test_files_out_of_reach_are_told_from_bad_files(tmp_path):
    bad, missing, folder = tmp_path / "bad.png", tmp_path / "missing.png", tmp_path / "folder.png"
    bad.write_bytes(b"no image")
    folder.mkdir()
    kinds = [type(image) for _, image in read_letterboxed([bad, missing, folder], 8, False)]
    assert kinds == [UnreadableFile, TemporarilyUnreadableFile, UnreadableFile]
