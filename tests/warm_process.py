"""Run programs in processes of their own, without waiting for the imports of each.

Importing PyTorch, Lightning, scikit-learn and Matplotlib takes five seconds of computing. ``WarmProcess`` starts one
process that imports them as for a user, without the checks that pytest installs, and forks it for every program. A
program has its own folder, environment, arguments and output, and its clean-up runs as at the end of Python, so it can
only be told from one in a new process by the modules that are loaded. Programs that test what importing tigranet loads
run in a ``WarmProcess`` of PyTorch alone. Those that test what is loaded before PyTorch need a new process.
"""

import atexit
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

COMMAND_LINE = "from tigranet.cli import main; main()"
IMPORTS = (
    "tigranet.cli.app", "tigranet.estimator", "tigranet.workflows.evaluate", "tigranet.workflows.features",
    "tigranet.workflows.figures", "tigranet.workflows.predict", "tigranet.workflows.report", "tigranet.workflows.train",
    "tigranet.training.fit_network", "tigranet.reproduction", "tigranet.ops.cpu.compile", "lightning.pytorch",
    "matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "sklearn.ensemble",
    "sklearn.datasets", "sklearn.model_selection", "sklearn.pipeline",
)  # fmt: skip


class WarmProcess:
    """A process with packages loaded, started when the first program runs."""

    def __init__(self, imports: tuple[str, ...] = IMPORTS) -> None:
        self._imports = imports
        self._process: subprocess.Popen[str] | None = None

    def run(
        self,
        code: str,
        *arguments: object,
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
        timeout: float = 300,
    ) -> "subprocess.CompletedProcess[str]":
        """Run Python code as ``python -c`` does, and return its exit code, output and error output."""
        if self._process is None:
            command = [sys.executable, "-P", __file__, *self._imports]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        request = {
            "code": code,
            "arguments": [str(argument) for argument in arguments],
            "folder": str(folder or Path.cwd()),
            "environment": os.environ | (environment or {}),
            "timeout": timeout,
        }
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        if answer["code"] is None:
            raise subprocess.TimeoutExpired(request["arguments"], timeout, answer["out"], answer["err"])
        return subprocess.CompletedProcess(request["arguments"], answer["code"], answer["out"], answer["err"])

    def tigranet(self, *arguments: object, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run a command of the command line."""
        return self.run(COMMAND_LINE, *arguments, **options)

    def close(self) -> None:
        """End the process, if it was started."""
        if self._process is not None:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()


def serve() -> None:
    """Run programs, one line of JSON each from stdin. Returns only at the end of stdin, and in every forked process."""
    for name in sys.argv[1:]:
        importlib.import_module(name)
    gc.freeze()  # otherwise the garbage collection of each process copies all memory
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = os.fork()
            if process == 0:
                for descriptor, source in enumerate((os.open(os.devnull, os.O_RDONLY), out.fileno(), err.fileno())):
                    os.dup2(source, descriptor)
                return run_program(request)
            answer = {"code": wait(process, request["timeout"])}
            for name, file in (("out", out), ("err", err)):
                file.seek(0)
                answer[name] = file.read().decode(errors="surrogateescape")
        print(json.dumps(answer), flush=True)


def run_program(request: dict[str, Any]) -> None:
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["-c", *request["arguments"]]
    sys.path.insert(0, "")
    namespace = {"__name__": "__main__"}
    try:
        exec(compile(request["code"], "<string>", "exec"), namespace)
    except SystemExit as stop:
        if not isinstance(stop.code, int | None):
            raise
        end(namespace, stop.code or 0)
    else:
        end(namespace, 0)


def end(namespace: dict[str, Any], code: int) -> None:
    """End the process as Python does, except that the loaded modules are not deleted, which takes half a second."""
    threading._shutdown()
    atexit._run_exitfuncs()
    namespace.clear()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # Python tries again, and reports the error
    os._exit(code & 0xFF)


def wait(process: int, timeout: float) -> int | None:
    """Return the exit code of a process, or None for a process that is killed after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return None


if __name__ == "__main__":
    serve()
