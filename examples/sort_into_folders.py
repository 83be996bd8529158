"""
Sort photographs into folders
=============================

Copy photographs into one folder per predicted class, and those with an uncertain prediction into 'unknown'.

Usage::

    python examples/sort_into_folders.py model/ photos/ sorted/
"""

import shutil
import sys
from collections import Counter
from pathlib import Path

from tigranet.data import UnreadableFile
from tigranet.workflows.predict import stream_predictions


def main(model: Path, photos: Path, target: Path) -> None:
    """Copy the photographs and print how many went to each folder."""
    counts: Counter[str] = Counter()
    for prediction in stream_predictions(model, photos, reject=0.9):
        if isinstance(prediction, UnreadableFile):
            print(f"skipped: {prediction.path}: {prediction.reason}")
            continue
        path = Path(prediction.path)
        copy = target / prediction.label / "-".join(path.relative_to(photos).parts)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
        counts[prediction.label] += 1
    for label, count in counts.most_common():
        print(f"{label}: {count}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
