"""Run many commands quickly, each in a process of its own: ``python -m hostile.runner``.

This process imports the packages. For each case, a line of JSON on stdin, it forks a process, and writes the result as
a line of JSON to stdout. A crash, a memory limit or a hang of one case does not touch the others, and none has to
import anything again.
"""

import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from PIL import Image
from typer.main import get_command

from hostile.case import PYTHON_FUNCTIONS

IDLE_SECONDS = 20
"""A process that does not compute for so long hangs."""
CPU_SECONDS = 40
"""A process that computes for longer is stopped. This is more than any case may take."""
ADDRESS_SPACE = 12 * 2**30
"""Limit of the address space, so that a fault cannot exhaust the memory of the machine."""
NOBODY = 65534
"""A user and a group without rights."""
IMPORTS = (
    "tigranet.cli", "tigranet.workflows.predict", "tigranet.workflows.features", "tigranet.workflows.evaluate",
    "tigranet.workflows.report", "tigranet.workflows.compare", "tigranet.workflows.figures", "tigranet.workflows.train",
    "tifffile", "PIL.TiffImagePlugin", "PIL.PngImagePlugin", "matplotlib.figure", "matplotlib.backends.backend_agg",
    "torchmetrics", "safetensors.torch", "multiprocessing.pool", "pyarrow", "rich._emoji_codes",
    *(f"encodings.{name}" for name in ("utf_8_sig", "utf_16", "utf_16_be", "utf_16_le", "unicode_escape", "idna")),
)  # fmt: skip


def main() -> None:
    """Run the cases from stdin until it is closed."""
    for name in IMPORTS:
        importlib.import_module(name)
    _warm_up()
    gc.freeze()  # otherwise the garbage collection of each process copies all memory
    for line in sys.stdin:
        print(json.dumps(_run_forked(json.loads(line))), flush=True)


def _warm_up() -> None:
    """Prepare what every case needs: the parser of the command line, and all that is imported only when it is used."""
    from tigranet import TIGraNet
    from tigranet.cli import app as command_line

    command_line.app = get_command(command_line.app)  # otherwise every command builds it again, in a third of its time
    Image.init()  # a file in no known format makes Pillow import all its decoders
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        TIGraNet("SC[1,1]-S[1]", num_classes=2).save_pretrained(folder)
        for arguments in (["predict", folder, f"{folder}/none"], ["train", f"{folder}/none", "-o", f"{folder}/model"]):
            sys.argv = ["tigranet", *arguments]
            _call_command()


def _run_forked(case: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start_megabytes = _resident_megabytes()
        process = os.fork()
        if process == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            os._exit(_run(case))
        status, usage, timed_out = _wait(process)
        megabytes = usage.ru_maxrss / 1024
        return {
            "code": os.waitstatus_to_exitcode(status),
            "timed_out": timed_out,
            "out": _text(out),
            "err": _text(err),
            "seconds": usage.ru_utime + usage.ru_stime,
            "megabytes": megabytes,
            "extra_megabytes": megabytes - start_megabytes,
        }


def _wait(process: int) -> tuple[int, Any, bool]:
    """Wait for a process, and kill it if it hangs. On a busy machine, waiting for the processor is no hang."""
    last_progress, last_seconds, timed_out = time.monotonic(), 0.0, False
    ending = os.pidfd_open(process)
    while True:
        if select.select([ending], [], [], 0.2)[0]:
            os.close(ending)
            _, status, usage = os.wait4(process, 0)
            return status, usage, timed_out
        if not timed_out:
            seconds, is_waiting = _cpu_seconds(process)
            if seconds > last_seconds or not is_waiting:
                last_progress, last_seconds = time.monotonic(), seconds
            if time.monotonic() - last_progress > IDLE_SECONDS or seconds > CPU_SECONDS:
                os.kill(process, signal.SIGKILL)
                timed_out = True


def _cpu_seconds(process: int) -> tuple[float, bool]:
    """Return the CPU time of a process, and whether it waits for something other than the processor."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), fields[0] != "R"


def _run(case: dict[str, Any]) -> int:
    """Run the case in the forked process, and return the exit code."""
    try:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if case["unprivileged"] and os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        # The inherited objects refer to the streams of the parent process, and to its idea of a terminal.
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        os.environ.update(case["environment"])
        os.chdir(case["folder"])
        sys.argv = ["tigranet", *case["arguments"]]
        code = _call_function(*case["arguments"]) if case["arguments"][0] in PYTHON_FUNCTIONS else _call_command()
        sys.stdout.flush()
        sys.stderr.flush()
        return code
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
        return 70


def _call_command() -> int:
    from tigranet.cli import main as command

    try:
        command()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def _call_function(name: str, path: str) -> int:
    """Call a function of the library. Errors for the user are printed as a command prints them."""
    try:
        if name == "from_pretrained":
            from tigranet import TIGraNet

            TIGraNet.from_pretrained(path)
        else:
            from tigranet.data import load_user_data

            for file in load_user_data(Path(path), size=8)[1]:
                print(f"  {str(file.path)!a}: {file.reason}", file=sys.stderr)
    except (ValueError, TypeError, OSError) as error:
        print(f"tigranet: {error}", file=sys.stderr)
        return 1
    return 0


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _text(file: Any) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="surrogateescape")


if __name__ == "__main__":
    main()
