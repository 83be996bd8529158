"""The Dockerfile: what it promises, and its steps without Docker (``make container-check``)."""

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
import urllib.request
from pathlib import Path

import pytest

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


@pytest.mark.skipif("TIGRANET_CONTAINER_CHECK" not in os.environ, reason="takes a minute: make container-check")
def test_its_steps_work_in_a_clean_virtual_environment_as_an_unprivileged_user(grey_model):
    """The wheel is installed as in the Dockerfile, except that its dependencies are those of this environment."""
    folder = Path(tempfile.mkdtemp(prefix="container-"))  # unlike pytest's, it can be opened to others
    process = None
    try:
        folder.chmod(0o755)
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
        subprocess.run(build, check=True, capture_output=True)
        environment = folder / "opt"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
        python = environment / "bin" / "python"
        (wheel,) = folder.glob("*.whl")
        install = ["-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet", str(wheel)]
        subprocess.run([sys.executable, *install], check=True, capture_output=True)
        (site_packages,) = environment.glob("lib/python*/site-packages")
        (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        shutil.copytree(grey_model, folder / "model")
        subprocess.run(["chmod", "-R", "a+rX,a-w", str(folder)], check=True)

        with bind("127.0.0.1", 0) as reserved:
            port = reserved.getsockname()[1]
        entry = json.loads(arguments_of("ENTRYPOINT"))
        command = [str(environment / "bin" / "tigranet"), *entry[1:], str(folder / "model")]
        command[command.index("--port") + 1] = str(port)
        settings = dict(assignment.split("=", 1) for assignment in shlex.split(arguments_of("ENV")))
        cache = tempfile.mkdtemp(prefix="cache-")
        settings |= {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "TIGRANET_CACHE": cache}
        if os.getuid() == 0:  # without the rights of root, in a namespace of its own
            command = ["unshare", "--user", f"--map-user={UNPRIVILEGED}", f"--map-group={UNPRIVILEGED}", *command]
        before = files_of(folder)
        process = subprocess.Popen(
            command, env=settings, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        log = []
        while not log or log[-1]["event"] != "ready":
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            log.append(json.loads(line))
        health = re.search(r"urlopen\('(.+?)'\)", arguments_of("HEALTHCHECK"))[1].replace("8000", str(port))
        time.sleep(0.5)
        assert json.load(urllib.request.urlopen(health)) == {"ready": True}
        process.terminate()
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "warning: everyone who can reach 0.0.0.0" in err
        assert files_of(folder) == before
        shutil.rmtree(cache)
    finally:
        if process is not None and process.poll() is None:
            process.kill()
            process.communicate()
        shutil.rmtree(folder)


def files_of(folder):
    return {(path, path.stat().st_mtime_ns) for path in folder.rglob("*")}
