import os
import sys

import pytest

from tigranet.workflows.output_folder import check_output_folder, has_matplotlib, require_matplotlib


def test_a_folder_that_can_be_created_is_accepted(tmp_path):
    check_output_folder(tmp_path, "model")
    check_output_folder(tmp_path / "new" / "newer", "model")
    assert not (tmp_path / "new").exists()


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"report.*file"):
        check_output_folder(tmp_path / "file", "report")
    with pytest.raises(PermissionError, match=r"below.*file"):
        check_output_folder(tmp_path / "file" / "below", "report")


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=str(tmp_path)):
        check_output_folder(tmp_path / "new", "report")


def test_matplotlib_is_looked_for_without_loading_it(monkeypatch):
    assert has_matplotlib()
    require_matplotlib()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not has_matplotlib()
    with pytest.raises(ImportError, match=r"pip install 'tigranet\[figures\]'"):
        require_matplotlib()
