import builtins

import pytest

from tigranet.serving import server

TOKEN = "0123456789abcdef"


@pytest.fixture
def served(monkeypatch):
    """The arguments that the server would be run with."""
    calls = []
    monkeypatch.setattr(server, "serve", lambda models, **options: calls.append((models, options)))
    return calls


def test_the_default_is_this_machine_only(tigranet, served):
    code, out, err = tigranet("serve", "runs/model/", "other=x")
    ((models, options),) = served
    assert (code, out, err) == (0, "", "")
    assert models == {"model": "runs/model/", "other": "x"}
    assert (options["host"], options["port"], options["token"]) == ("127.0.0.1", 8000, None)
    assert options["limits"].body_bytes == 16 * 2**20


def test_another_address_without_a_token_prints_a_warning(tigranet, served, tmp_path):
    assert "--token-file" in tigranet("serve", "model", "--host", "0.0.0.0").err
    (tmp_path / "token").write_text(TOKEN)
    result = tigranet("serve", "model", "--host", "0.0.0.0", "--token-file", tmp_path / "token")
    assert result.err == ""
    assert served[1][1]["token"] == TOKEN


def test_limits_and_device_reach_the_server(tigranet, served):
    tigranet(
        "serve",
        "model",
        "--max-body",
        "2",
        "--max-images",
        "3",
        "--max-pixels",
        "4",
        "--timeout",
        "5",
        "--device",
        "cpu",
    )
    ((_, options),) = served
    limits = options["limits"]
    assert (limits.body_bytes, limits.images, limits.pixels, limits.request_seconds) == (2**21, 3, 4, 5.0)
    assert options["device"] == "cpu"


def test_wrong_arguments_are_errors_in_one_line(tigranet, served, tmp_path):
    (tmp_path / "token").write_text("short")
    for arguments, reason in (
        (["a/m", "b/m"], "two models"),
        (["m", "--token-file", tmp_path / "token"], "16"),
        (["m", "--token-file", tmp_path / "nosuch"], "nosuch"),
    ):
        code, _, err = tigranet("serve", *arguments)
        assert code == 1
        assert reason in err
        assert len(err.splitlines()) == 1
    assert not served


def test_a_missing_package_is_named_with_the_remedy(tigranet, monkeypatch):
    original = builtins.__import__

    def without_uvicorn(name, *arguments, **options):
        if name == "tigranet.serving.server":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_uvicorn)
    code, _, err = tigranet("serve", "model")
    assert code == 1
    assert "uvicorn" in err
    assert "tigranet[serve]" in err
