"""Sort photographs into one folder per class. Uncertain predictions go to the folder 'unknown'.

Usage:
    python examples/sort_into_folders.py model/ photos/ sorted/
"""

import shutil
import sys
from collections import Counter
from pathlib import Path

from tigranet import TIGraNet
from tigranet.data import UnreadableFile, image_files
from tigranet.evaluation import predict_files


def main(model: Path, photos: Path, target: Path) -> None:
    """Copy every photograph to the folder of its predicted class."""
    counts: Counter[str] = Counter()
    for prediction in predict_files(TIGraNet.from_pretrained(model), image_files(photos), reject=0.9):
        if isinstance(prediction, UnreadableFile):
            print(f"skipped {prediction.path}: {prediction.reason}")
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
