"""``python -m benchmarks.compare_versions OTHER_CHECKOUT``: the speed of this checkout against another one, in one run.

Each version runs in a process of its own. The processes take turns: in every round each of them times a piece of work
once, so that a change of the machine's clock or load meets both alike. The result is the ratio of the medians and of
the shortest times, this version over the other one: below 1 is faster.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent.parent


class Version:
    """A process that times pieces of work with one version of the library.

    Args:
        checkout: The folder of the repository.
        device: ``"cpu"`` or ``"cuda"``.
    """

    def __init__(self, checkout: Path, device: str) -> None:
        search_path = [str(checkout / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(search_path)}
        worker = str(Path(__file__).with_name("version_worker.py"))
        # -P: this folder has a statistics.py, which would hide Python's own
        self.process = subprocess.Popen(
            [sys.executable, "-P", worker, device],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.works: list[str] = self._answer()

    def milliseconds(self, work: str) -> float:
        """Time a piece of work.

        Args:
            work: One of ``works``.

        Returns:
            The time of one call.
        """
        assert self.process.stdin is not None
        print(work, file=self.process.stdin, flush=True)
        return float(self._answer())

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError(f"the worker ended with exit code {self.process.returncode}: see its messages above")
        return json.loads(line)


def compare(other: Path, device: str, rounds: int, only: str = "") -> list[dict[str, Any]]:
    """Time all pieces of work with both versions, in turns.

    Args:
        other: The checkout to compare with.
        device: ``"cpu"`` or ``"cuda"``.
        rounds: How often each piece is timed.
        only: Time only the pieces whose name contains this.

    Returns:
        One row per piece: its name, both medians in milliseconds, and their ratio.
    """
    versions = {"other": Version(other, device), "this": Version(HERE, device)}
    rows = []
    for work in versions["this"].works:
        if only not in work:
            continue
        times: dict[str, list[float]] = {name: [] for name in versions}
        for number in range(rounds + 1):
            for name in sorted(versions, reverse=bool(number % 2)):
                times[name].append(versions[name].milliseconds(work))
        timings = {name: milliseconds[1:] for name, milliseconds in times.items()}  # the first call compiles
        other_ms, this_ms = median(timings["other"]), median(timings["this"])
        shortest = min(timings["this"]) / min(timings["other"])
        row = {"work": work, "other_ms": other_ms, "this_ms": this_ms, "ratio": this_ms / other_ms}
        row |= {"ratio_of_shortest": shortest, "device": device}
        ratios = f"ratio {row['ratio']:.3f}, of the shortest {shortest:.3f}"
        print(f"{work:55} {other_ms:9.3f} ms {this_ms:9.3f} ms  {ratios}", flush=True)
        rows.append(row)
    for version in versions.values():
        version.close()
    return rows


def main() -> None:
    """Compare, print, and write the rows to a CSV file where one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="Folder of the checkout to compare with.")
    parser.add_argument("--device", default="cpu", help="cpu or cuda.")
    parser.add_argument("--rounds", type=int, default=15, help="Number of timings per piece of work.")
    parser.add_argument("--only", default="", help="Time only the pieces of work whose name contains this.")
    parser.add_argument("--csv", type=Path, help="Write the rows to this file.")
    options = parser.parse_args()
    rows = compare(options.other, options.device, options.rounds, options.only)
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {name: round(x, 4) if isinstance(x, float) else x for name, x in row.items()} for row in rows
            )
    for column in ("ratio", "ratio_of_shortest"):
        values = [row[column] for row in rows]
        print(f"{column}: median {median(values):.3f}, largest {max(values):.3f}")


if __name__ == "__main__":
    main()
