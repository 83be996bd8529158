"""The commands that are interrupted, what they write, and how they continue."""

from dataclasses import dataclass

EPOCHS = 40
"""Number of epochs of the trainings: about a second."""
NETWORK = ("--architecture", "SC[3,3]-S[4]-FC[10]", "--batch-size", "8", "--epochs", str(EPOCHS))


@dataclass(frozen=True)
class Command:
    """One use of ``tigranet`` whose results are compared with those of an uninterrupted run.

    ``{data}``, ``{photos}``, ``{shards}`` and ``{model}`` in the arguments stand for the prepared images, the shards of
    ``{data}`` and the prepared model. All
    other paths are relative to a working folder, which also holds the cache of the package in ``cache/``.
    """

    name: str
    """Name in the table."""
    arguments: tuple[str, ...]
    """Arguments of ``tigranet``."""
    resume: tuple[str, ...] = ()
    """Further arguments that continue an interrupted run."""
    final_files: tuple[str, ...] = ()
    """Files that at every moment hold the older or the new content, never anything else."""
    events: tuple[str, ...] = ()
    """Patterns of files whose appearance marks a moment of interest, such as that of writing."""
    phases: tuple[tuple[str, str], ...] = ()
    """Names of the phases of the command, each with the pattern of a file that exists when the phase begins."""
    has_kernels: bool = True
    """Whether the compiled kernels are in the cache from the beginning."""


TRAIN = Command(
    "train",
    ("train", "{data}", "-o", "model", "--overwrite", "--seed", "0", *NETWORK),
    resume=("--resume",),
    final_files=("model/model.safetensors", "model/config.json"),
    events=(
        "cache/decoded/.*",
        "model/checkpoints/.*",
        "model/checkpoints/best.ckpt",
        "model/checkpoints/last.ckpt",
        "model/.*",
        "model/model.safetensors",
        "model/training.json",
        "model/rotated.png",
    ),
    phases=(
        ("decoding", "cache/decoded/*"),
        ("training", "model/checkpoints/*.ckpt"),
        ("measuring", "model/model.safetensors"),
        ("drawing", "model/rotated.png"),
    ),
)
TRAIN_ON_SHARDS = Command(
    "train on shards",
    ("train", "{shards}", "-o", "model", "--overwrite", "--seed", "0", "--checkpoint-steps", "1", *NETWORK),
    resume=("--resume",),
    final_files=TRAIN.final_files,
    events=TRAIN.events[1:],
    phases=TRAIN.phases[1:],
)
OLDER_TRAIN = Command(
    "train with another seed", ("train", "{data}", "-o", "model", "--overwrite", "--seed", "1", *NETWORK)
)
LARGE_TRAIN = Command(
    "train on large images",
    (
        "train",
        "{data}",
        "-o",
        "model",
        "--overwrite",
        "--size",
        "1024",
        *NETWORK[:2],
        "--batch-size",
        "32",
        "--epochs",
        "1",
    ),
    final_files=TRAIN.final_files,
)
PREDICT_CSV = Command(
    "predict --csv",
    ("predict", "{model}", "{photos}", "--csv", "answers.csv"),
    final_files=("answers.csv",),
    events=(".*", "answers.csv"),
    phases=(("writing", ".*"), ("written", "answers.csv")),
)
PREDICT_PARQUET = Command(
    "predict --parquet",
    ("predict", "{model}", "{photos}", "--parquet", "answers.parquet"),
    final_files=("answers.parquet",),
    events=(".*", "answers.parquet"),
    phases=(("writing", ".*"), ("written", "answers.parquet")),
)
REPORT = Command(
    "report",
    ("report", "{model}", "{data}", "-o", "report", "--epochs", "2", "--images", "9"),
    final_files=("report/report.html", "report/report.json"),
    events=("cache/decoded/.*", "report/.*", "report/report.json", "report/report.html"),
    phases=(("measuring", "cache/decoded/*.f4"), ("writing", "report"), ("written", "report/report.html")),
)
CACHE = Command(
    "cache of images",
    ("evaluate", "{model}", "{photos}", "--json"),
    events=("cache/decoded/.*", "cache/decoded/*.json", "cache/decoded/*.f4"),
    phases=(("decoding", "cache/decoded/.*"), ("decoded", "cache/decoded/*.f4")),
)
KERNELS = Command(
    "cache of kernels",
    ("evaluate", "{model}", "{photos}", "--json"),
    events=("cache/numba/*/*/*",),
    phases=(("compiling", "cache/numba/*"), ("storing", "cache/numba/*/*/*.nbc")),
    has_kernels=False,
)
SHARD_DATA = Command(
    "shards of a few images", ("data", "shard", "{data}", "-o", "shards", "--images-per-shard", "16", "--workers", "1")
)
SHARD = Command(
    "shard",
    ("data", "shard", "{photos}", "-o", "shards", "--images-per-shard", "30", "--workers", "2"),
    events=("shards/.*", "shards/*.tar", "shards/*.npz", "shards/shards.json"),
    phases=(("planned", "shards/plan.json"), ("writing", "shards/*.tar"), ("written", "shards/shards.json")),
)
COMMANDS = (TRAIN, TRAIN_ON_SHARDS, SHARD, PREDICT_CSV, PREDICT_PARQUET, REPORT, CACHE, KERNELS)
"""All commands that are interrupted."""
SHARES = {
    "train": 28,
    "train on shards": 14,
    "shard": 8,
    "predict --csv": 9,
    "predict --parquet": 9,
    "report": 14,
    "cache of images": 12,
    "cache of kernels": 6,
}
"""Part of the signals that each command gets, in per cent."""
