"""Delete temporary files that killed processes have left behind."""

import shutil
import time
from contextlib import suppress
from pathlib import Path

STAGING_PREFIX = ".saving-"
"""Beginning of the names of temporary files and folders, which become visible under their own names when complete."""
ABANDONED_AFTER = 24 * 60 * 60
"""Seconds without a change after which a temporary file is regarded as left behind."""


def delete_abandoned_files(folder: Path) -> None:
    """Delete the temporary files and folders in a folder that have not been changed for a day.

    A process that is killed cannot delete its temporary files. Files that another process is writing now have a recent
    modification time, and stay. Files that cannot be deleted stay too.

    Args:
        folder: The folder. It need not exist; sub-folders are not searched.
    """
    with suppress(OSError):
        for path in folder.glob(f"{STAGING_PREFIX}*"):
            with suppress(OSError):
                if time.time() - path.lstat().st_mtime > ABANDONED_AFTER:
                    _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
