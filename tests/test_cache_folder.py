import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pooch
import pytest

from tigranet import cache_folder as module
from tigranet.cache_folder import cache_folder

needs_unix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have numbers on Unix only")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home directory and a temporary folder of the test's own, and no setting of the cache folder."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    for variable in ("TIGRANET_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    module._folder_of_this_process.cache_clear()
    yield tmp_path / "home"
    module._folder_of_this_process.cache_clear()


def private_folder(tmp_path):
    return tmp_path / "tmp" / f"tigranet-{os.getuid()}"


def test_the_environment_variable_decides(monkeypatch):
    monkeypatch.setenv("TIGRANET_CACHE", "/somewhere/else")
    assert cache_folder() == Path("/somewhere/else")


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_the_folders_of_linux(home, monkeypatch, tmp_path):
    assert cache_folder() == home / ".cache" / "tigranet"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "tigranet"


def test_it_is_the_folder_where_pooch_keeps_downloads():
    assert cache_folder() == pooch.os_cache("tigranet")


def test_nothing_is_created_in_the_home_directory(home):
    cache_folder()
    assert list(home.iterdir()) == []


@needs_unix
@pytest.mark.parametrize("home_name", ["tmp/a-file/home", "tmp/a-file"])
def test_without_a_usable_home_directory_it_is_a_private_temporary_folder(home_name, monkeypatch, tmp_path):
    (tmp_path / "tmp" / "a-file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / home_name))
    folder = cache_folder()
    assert folder == private_folder(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache_folder() == folder


@needs_unix
def test_an_unwritable_home_directory_is_not_used_unless_the_cache_exists(home, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != home)
    assert cache_folder() == private_folder(tmp_path)
    (home / ".cache" / "tigranet").mkdir(parents=True)
    assert cache_folder() == home / ".cache" / "tigranet"


@needs_unix
@pytest.mark.parametrize("answer", ["~/.cache/tigranet", RuntimeError("Could not determine home directory.")])
def test_a_user_without_a_home_directory_gets_a_private_temporary_folder(answer, monkeypatch, tmp_path):
    def user_cache_dir(_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("platformdirs.user_cache_dir", user_cache_dir)
    assert cache_folder() == private_folder(tmp_path)


@needs_unix
@pytest.mark.parametrize("occupant", ["readable by others", "a link", "a file"])
def test_a_temporary_folder_that_is_not_private_is_not_used(occupant, home, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != home)
    folder = private_folder(tmp_path)
    if occupant == "readable by others":
        folder.mkdir()
        folder.chmod(0o755)
    elif occupant == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.write_text("")
    substitute = cache_folder()
    assert substitute != folder
    assert substitute.parent == tmp_path / "tmp"
    assert stat.S_IMODE(substitute.stat().st_mode) == 0o700
    assert cache_folder() == substitute


def test_the_import_is_light():
    code = "import sys, tigranet.cache_folder; print({'pooch', 'platformdirs', 'torch'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
