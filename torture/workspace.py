"""The folder of a torture: images, a trained model, compiled kernels, and the results of uninterrupted runs."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow
import pyarrow.parquet

from torture.commands import OLDER_TRAIN, SHARD_DATA, TRAIN, TRAIN_ON_SHARDS, Command
from torture.comparison import fingerprints
from torture.images import write_images
from torture.process import Outcome, Process

STDOUT_FILE = "stdout.json"
"""File in a working folder with what the command printed, if it printed JSON."""
WEIGHTS = "model/model.safetensors: "
"""Beginning of the names of the digests of weights."""
NO_VARIABLES: Mapping[str, str] = {}
"""No environment variables besides those of the workspace."""


@dataclass
class Workspace:
    """Everything that the rounds share. Each round has a working folder of its own.

    Args:
        folder: An empty folder.
    """

    folder: Path
    references: dict[str, dict[str, str]] = field(default_factory=dict)
    """Digests of the results of uninterrupted runs, by the name of the command."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Durations of these runs."""
    older: dict[str, str] = field(default_factory=dict)
    """Digests of the results of the training with the other seed."""

    def prepare(self) -> None:
        """Write the images and the shards, and train the older and the prepared model.

        Raises:
            RuntimeError: If a command fails.
        """
        write_images(self.folder / "data", per_class=20, size=12)
        write_images(self.folder / "photos", per_class=100, size=96, seed=1)
        folder = self.working_folder("older", OLDER_TRAIN)
        _require_success(self.run(OLDER_TRAIN, folder))
        self.older = fingerprints(folder)
        shutil.copytree(folder / "model", self.folder / "model")
        (folder / "cache" / "numba").rename(self.folder / "numba")
        folder = self.working_folder("prepared shards", SHARD_DATA)
        _require_success(self.run(SHARD_DATA, folder))
        (folder / "shards").rename(self.folder / "shards")

    def measure(self, command: Command) -> Outcome:
        """Run a command without interruption, and keep its duration and the digests of its results.

        Args:
            command: The command.

        Returns:
            The outcome.

        Raises:
            RuntimeError: If the command fails.
        """
        folder = self.working_folder(f"reference {command.name}", command)
        outcome = self.run(command, folder)
        _require_success(outcome)
        self.references[command.name] = fingerprints(folder)
        self.seconds[command.name] = outcome.seconds
        return outcome

    def check_equal_trainings(self) -> None:
        """Check that the uninterrupted trainings in memory and on shards have the same weights, bit for bit.

        Raises:
            RuntimeError: If they differ.
        """
        in_memory, on_shards = (
            {name: digest for name, digest in self.references[command.name].items() if name.startswith(WEIGHTS)}
            for command in (TRAIN, TRAIN_ON_SHARDS)
        )
        if not in_memory or in_memory != on_shards:
            raise RuntimeError("the training on shards has other weights than the training in memory")

    def working_folder(self, name: str, command: Command) -> Path:
        """Create an empty working folder, with compiled kernels in its cache if the command wants them.

        Args:
            name: Name of the folder. An older folder of this name is deleted.
            command: The command that will run there.

        Returns:
            Its path.
        """
        folder = self.folder / name.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.temporary_folder(folder), ignore_errors=True)
        self.temporary_folder(folder).mkdir(parents=True)
        (folder / "cache").mkdir(parents=True)
        if command.has_kernels and (self.folder / "numba").exists():
            shutil.copytree(self.folder / "numba", folder / "cache" / "numba")
        return folder

    def temporary_folder(self, folder: Path) -> Path:
        """Return the folder for the temporary files of a working folder.

        Args:
            folder: The working folder.

        Returns:
            Its path.
        """
        return self.folder / "tmp" / folder.name

    def system_temporary_files(self, folder: Path) -> list[Path]:
        """Return what processes have left in the temporary folder, except the cache that PyTorch keeps there.

        Args:
            folder: The working folder.

        Returns:
            The paths.
        """
        return [path for path in self.temporary_folder(folder).iterdir() if not path.name.startswith("torchinductor_")]

    def add_older_results(self, command: Command, folder: Path) -> dict[str, str]:
        """Put complete results of an earlier run into a working folder.

        Args:
            command: The command that will replace them.
            folder: The working folder.

        Returns:
            The digests of the files.
        """
        if command.arguments[0] == "train":
            shutil.copytree(self.folder / "model", folder / "model", ignore=shutil.ignore_patterns("checkpoints"))
        for name in command.final_files:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                _write_older_file(path)
        return fingerprints(folder)

    def start(
        self,
        command: Command,
        folder: Path,
        *,
        resume: bool = False,
        limits: str = "",
        environment: Mapping[str, str] = NO_VARIABLES,
    ) -> Process:
        """Start a command.

        Args:
            command: The command.
            folder: The working folder.
            resume: Whether to continue an interrupted run.
            limits: Options of ``ulimit``.
            environment: Further environment variables.

        Returns:
            The process.
        """
        arguments = self.arguments(command) + (command.resume if resume else ())
        return Process(arguments, folder, {**self.environment(folder), **environment}, limits)

    def run(self, command: Command, folder: Path, resume: bool = False) -> Outcome:
        """Run a command to its end without limits, and keep the JSON that it prints in the working folder.

        Args:
            command: The command.
            folder: The working folder.
            resume: Whether to continue an interrupted run.

        Returns:
            The outcome.
        """
        outcome = self.start(command, folder, resume=resume).finish()
        if outcome.stdout.startswith("{"):
            (folder / STDOUT_FILE).write_text(outcome.stdout)
        return outcome

    def arguments(self, command: Command) -> tuple[str, ...]:
        """Return the arguments of a command with the paths of the images and of the model.

        Args:
            command: The command.

        Returns:
            The arguments.
        """
        places = {"{data}": "data", "{photos}": "photos", "{shards}": "shards", "{model}": "model"}
        return tuple(
            str(self.folder / places[argument]) if argument in places else argument for argument in command.arguments
        )

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the environment of the processes of a working folder: its own cache and temporary folder.

        Args:
            folder: The working folder.

        Returns:
            Variables by name.
        """
        return {
            "TIGRANET_CACHE": str(folder / "cache"),
            "TMPDIR": str(self.temporary_folder(folder)),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }


OLDER_ROW = {"path": "older.png", "label": "coarse", "probability": 1.0}
"""The prediction in tables of an earlier run."""


def _write_older_file(path: Path) -> None:
    """Write a complete result of an earlier run."""
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([OLDER_ROW]), path)
    elif path.suffix == ".csv":
        path.write_text(f"{','.join(OLDER_ROW)}\n{','.join(map(str, OLDER_ROW.values()))}\n")
    else:
        path.write_text({".html": "<html>older</html>\n", ".json": "{}\n"}[path.suffix])


def _require_success(outcome: Outcome) -> None:
    if outcome.code != 0:
        raise RuntimeError(f"tigranet {' '.join(outcome.arguments)} failed without interruption: {outcome.stderr}")
