"""Sort photographs into one folder a class, those that the network is not sure of into 'unknown'.

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
    sorted_so_far: Counter[str] = Counter()
    for answer in predict_files(TIGraNet.from_pretrained(model), image_files(photos), reject=0.9):
        if isinstance(answer, UnreadableFile):
            print(f"left out: {answer.path}: {answer.reason}")
            continue
        path = Path(answer.path)
        place = target / answer.label / "-".join(path.relative_to(photos).parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)
        sorted_so_far[answer.label] += 1
    for label, count in sorted_so_far.most_common():
        print(f"{label}: {count}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
