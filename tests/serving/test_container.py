"""The Dockerfile: what it promises, and its steps without Docker.

``make container-check`` also installs the dependencies from the package index, and compiles the fused kernels.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from tigranet.cli.app import app
from tigranet.serving.server import bind

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
STEPS = [line.split(maxsplit=1) for line in LINES if line and not line.startswith("#")]
UNPRIVILEGED = 65534
"""User and group 'nobody'."""


def arguments_of(instruction):
    (arguments,) = (arguments for name, arguments in STEPS if name == instruction)
    return arguments


def test_the_container_runs_without_privileges_and_downloads_nothing():
    assert int(arguments_of("USER").split(":")[0]) >= 1000
    names = [name for name, _ in STEPS]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert "ADD" not in names
    assert "HF_HUB_OFFLINE=1" in arguments_of("ENV")
    assert (ROOT / "Dockerfile.dockerignore").read_text().splitlines()[0] == "*"


def test_the_command_of_the_container_is_accepted(monkeypatch):
    entry, command_line = json.loads(arguments_of("ENTRYPOINT")), json.loads(arguments_of("CMD"))
    assert entry[0].endswith("/bin/tigranet")
    calls = []
    monkeypatch.setattr("tigranet.serving.server.serve", lambda models, **options: calls.append((models, options)))
    app([*entry[1:], *command_line], standalone_mode=False)
    ((models, options),) = calls
    assert models == {"model": "/model"}
    assert (options["host"], options["port"]) == ("0.0.0.0", 8000)


IS_COMPLETE = "TIGRANET_CONTAINER_CHECK" in os.environ
"""Whether to install the dependencies from the package index, and to compile the fused kernels, as in the container."""


def install(wheel, environment):
    """Perform the step RUN. Without the complete check, the dependencies are those of this environment."""
    (step,) = (arguments for name, arguments in STEPS if name == "RUN")
    assert "python -m venv /opt/tigranet" in step
    assert '"$wheel[serve]"' in step
    if IS_COMPLETE:
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        command = [environment / "bin" / "pip", "install", "--no-cache-dir", "--quiet"]
        command += ["--constraint", ROOT / "constraints.txt", f"{wheel}[serve]"]
        subprocess.run(command, check=True)
        return
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*command, "--quiet", str(wheel)], check=True, capture_output=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")


def without_privileges():
    """Return what to put before a command, and options of its process, so that it has no rights of root."""
    if os.getuid() != 0:
        return [], {}
    command = ["unshare", "--user", f"--map-user={UNPRIVILEGED}", f"--map-group={UNPRIVILEGED}"]
    if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
        return command, {}  # a namespace in which this user has no rights over others
    return [], {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []}


def test_its_steps_work_in_a_clean_virtual_environment_as_an_unprivileged_user(grey_model):
    folder = Path(tempfile.mkdtemp(prefix="container-"))  # unlike pytest's, it can be opened to others
    cache = Path(tempfile.mkdtemp(prefix="cache-"))
    process = None
    try:
        folder.chmod(0o755)
        cache.chmod(0o777)
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
        (wheel,) = folder.glob("*.whl")
        environment = folder / "opt"
        install(wheel, environment)
        wheel.unlink()
        shutil.copytree(grey_model, folder / "model")
        subprocess.run(["chmod", "-R", "a+rX,a-w", str(folder)], check=True)

        with bind("127.0.0.1", 0) as reserved:
            port = str(reserved.getsockname()[1])
        entry = json.loads(arguments_of("ENTRYPOINT"))
        command = [str(environment / "bin" / "tigranet"), *entry[1:], str(folder / "model")]
        command[command.index("--port") + 1] = port
        settings = dict(assignment.split("=", 1) for assignment in shlex.split(arguments_of("ENV")))
        settings |= {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "TIGRANET_CACHE": str(cache)}
        if not IS_COMPLETE:
            settings["TIGRANET_KERNELS"] = "plain"
        prefix, options = without_privileges()
        before = files_of(folder)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([*prefix, *command], env=settings, cwd="/", **pipes, **options)
        log = []
        while not log or log[-1]["event"] != "ready":
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            log.append(json.loads(line))
        health = json.loads(re.search(r"CMD (\[.+\])", arguments_of("HEALTHCHECK"))[1])
        check = [str(environment / "bin" / "python"), "-c", health[-1].replace("8000", port)]
        deadline = time.monotonic() + 30  # the log says 'ready' shortly before connections are accepted
        while (result := subprocess.run(check, env=settings, capture_output=True)).returncode:
            assert time.monotonic() < deadline, result.stderr
            time.sleep(0.1)
        process.terminate()
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "warning: everyone who can reach 0.0.0.0" in err
        assert files_of(folder) == before
    finally:
        if process is not None and process.poll() is None:
            process.kill()
            process.communicate()
        shutil.rmtree(folder)
        shutil.rmtree(cache)


def files_of(folder):
    return {(path, path.stat().st_mtime_ns) for path in folder.rglob("*")}
