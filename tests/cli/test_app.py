"""All commands: help, examples, global options, and how errors are shown."""

import asyncio
import inspect
import io
import shlex
import subprocess
import sys
from dataclasses import fields

import pytest

from tigranet import TIGraNet
from tigranet.cli.app import app, data_app, describe_error, global_options_first, main
from tigranet.cli.train import train
from tigranet.recipe_parameters import RECIPE_PARAMETERS
from tigranet.training import Recipe

EXAMPLES = {
    command.callback.__name__: command.epilog for command in (*app.registered_commands, *data_app.registered_commands)
}


def test_every_command_has_an_example():
    assert len(EXAMPLES) == 17
    assert all(example.startswith("Example: tigranet ") for example in EXAMPLES.values())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_every_command_runs(name, tigranet, monkeypatch, tmp_path, photos):
    """Each example runs as it is printed, in a folder with the files that it names; trainings are shortened.

    A later option replaces an earlier one, so options that make the work smaller are written behind the example.
    """
    monkeypatch.chdir(tmp_path)
    for folder in ("photos", "unlabelled"):
        (tmp_path / folder).symlink_to(photos)
    (tmp_path / "data").mkdir()
    if name != "train":
        TIGraNet("paper-small", num_classes=3, image_size=28).save_pretrained("model")
    monkeypatch.setattr("tigranet.data.sources.download.fetch_mnist", lambda *_: [])
    monkeypatch.setattr("tigranet.evaluation.speed.SINGLE_IMAGE_CALLS", 1)
    example = shlex.split(EXAMPLES[name].removeprefix("Example: tigranet "))
    shortened = {
        "train": ["--epochs", "1", "--architecture", "SC[2,2]-S[2]"],
        "report": ["--no-cnn", "--images", "10"],
        "bench": ["--batch", "2", "--size", "9", "--json"],
        "reproduce": ["--epochs", "1", "--method", "TIGraNet"],
        "figures": ["--epochs", "1"],
        "angles": ["--images", "5", "--by", "45"],
        "serve": ["--port", "0"],
    }
    if name == "serve":  # it starts, warms up, and stops at once
        monkeypatch.setenv("TIGRANET_KERNELS", "plain")
        monkeypatch.setattr("uvicorn.Server.main_loop", lambda server: asyncio.sleep(0))
    code, _, err = tigranet(*example, *shortened.get(name, []))
    assert code == 0, err


def test_help_shows_the_example_and_loads_no_pytorch():
    code = (
        "import sys, tigranet.cli; sys.argv = ['tigranet', 'train', '--help']\n"
        "try: tigranet.cli.main()\n"
        "finally: print('torch' in sys.modules, 'lightning' in sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tigranet train mnist-012 -o model/" in finished.stdout
    assert finished.stdout.splitlines()[-1] == "False False"


def test_the_recipe_options_are_those_of_the_shared_table_and_of_recipe():
    recipe_fields = [field.name for field in fields(Recipe) if field.name not in ("as_is", "turned", "seed")]
    options = inspect.signature(train).parameters
    names = [name for name in options if name in RECIPE_PARAMETERS]
    assert list(RECIPE_PARAMETERS) == names == recipe_fields
    for name in names:
        assert RECIPE_PARAMETERS[name].name == name
        (option,) = options[name].annotation.__metadata__
        assert (option.help, option.show_default) == (RECIPE_PARAMETERS[name].help, RECIPE_PARAMETERS[name].default)


@pytest.mark.parametrize("name", [name for name in RECIPE_PARAMETERS if name != "jitter"])
def test_a_recipe_option_accepts_the_type_in_the_table(name):
    option = inspect.signature(train).parameters[name].annotation.__origin__
    assert option == RECIPE_PARAMETERS[name].type | None


@pytest.mark.parametrize(
    ("typed", "parsed"),
    [
        ("train photos/ --debug", "--debug train photos/"),
        ("train --device cpu photos/", "--device cpu train photos/"),
        ("train photos/ --device=cpu --devices 2", "--device=cpu train photos/ --devices 2"),
        ("--device cpu data list --debug", "--device cpu --debug data list"),
        ("predict model -- --debug", "predict model -- --debug"),
        ("train photos/ --device", "--device train photos/"),
    ],
)
def test_global_options_may_be_written_anywhere(typed, parsed):
    assert global_options_first(typed.split()) == parsed.split()


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_the_traceback(monkeypatch, place):
    command = ["train", "cats"]
    monkeypatch.setattr(
        sys, "argv", ["tigranet", "--debug", *command] if place == "before" else ["tigranet", *command, "--debug"]
    )
    with pytest.raises(ValueError, match="'cats'"):
        main()


@pytest.mark.parametrize("command", [("train", "mnist-012"), ("evaluate", "MODEL", "mnist-012"), ("bench", "paper")])
def test_the_device_is_an_option_of_every_command(tigranet, tmp_path, command):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path / "m")
    command = [str(tmp_path / "m") if word == "MODEL" else word for word in command]
    for arguments in (("--device", "gpu", *command), (*command, "--device", "gpu")):
        code, _, err = tigranet(*arguments)
        assert code == 1
        assert "cuda:N" in err
        assert "'gpu'" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "mnist-12"), ("'mnist-12'", "did you mean 'mnist-012'?")),
        (("train", "mnist-012", "--architecture", "SC[3]-S[1]"), ("SC", "2 numbers", "maps, degree", "layer 1")),
        (("train", "mnist-012", "--epochs", "0"), ("epochs", "1", "0")),
    ],
)
def test_an_error_is_one_line_and_leaves_nothing(tigranet, tmp_path, arguments, words):
    code, out, err = tigranet(*arguments, "-o", tmp_path / "m")
    assert code == 1
    assert out == ""
    assert all(word in err.replace("\n", " ") for word in words), err
    assert "Traceback" not in err
    assert not (tmp_path / "m").exists()


def test_an_unexpected_error_is_one_line_too(tigranet, monkeypatch, tmp_path):
    monkeypatch.setattr("tigranet.workflows.train.train", lambda *_, **__: [][0])
    code, _, err = tigranet("train", "mnist-012", "-o", tmp_path / "m")
    assert code == 1
    assert err.splitlines()[-1] == "tigranet: IndexError: list index out of range"


HOSTILE = "[/] \x1b[31m\nb \u202e \udcff"
ESCAPED = r"[/] \x1b[31m\nb \u202e \xff"


def test_an_error_shows_control_characters_written_out_in_one_line(tigranet, tmp_path):
    code, _, err = tigranet("train", f"/{HOSTILE}/images.csv", "-o", tmp_path / "m")
    assert code == 1
    (line,) = err.splitlines()
    assert ESCAPED in line


@pytest.mark.parametrize("arguments", [(HOSTILE,), ("train", "a", f"--{HOSTILE}"), ("train", "a", "--seed", HOSTILE)])
def test_a_usage_error_shows_control_characters_written_out(tigranet, arguments):
    code, _, err = tigranet(*arguments)
    assert code == 2
    assert r"\x1b" in err or "--seed" in arguments  # of a wrong number only the option is named
    assert "\x1b" not in err
    assert "\u202e" not in err


def test_an_error_has_one_line_and_one_more_for_each_note():
    error = ValueError("weights do not fit:\n\tlayer 1\n\tlayer 2")
    error.add_note("saved in 'a\nb'")
    assert describe_error(error) == "weights do not fit: layer 1 layer 2\n  saved in 'a\\nb'"
    assert "more memory than there is" in describe_error(MemoryError())


@pytest.mark.usefixtures("whole_results")
def test_a_table_is_printed_under_an_ascii_locale(monkeypatch, tmp_path, photos):
    """The whole command with an ASCII terminal: ± and the names of classes are replaced, and nothing fails."""
    names = ["$x^{$", "λ [red]", "日本\x1b"]
    TIGraNet("SC[2,2]-DP[40]-S[2]", 3, image_size=28, class_names=names).save_pretrained(tmp_path / "m")
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2)]
    folder = tmp_path / "photos λ [red]"
    folder.mkdir()
    for number, name in enumerate(names):
        (folder / name).symlink_to(photos / f"digit {number}")
    for command in (
        ["evaluate", tmp_path / "m", folder],
        ["predict", tmp_path / "m", folder],
        ["report", tmp_path / "m", folder, "-o", tmp_path / "r", "--no-cnn", "--images", "3"],
    ):
        monkeypatch.setattr(sys, "argv", ["tigranet", *map(str, command)])
        monkeypatch.setattr(sys, "stdout", streams[0])
        monkeypatch.setattr(sys, "stderr", streams[1])
        with pytest.raises(SystemExit) as exit_info:
            main()
        assert not exit_info.value.code, streams[1].buffer.getvalue()
    out = streams[0].buffer.getvalue().decode("ascii")
    assert "+- " in out
    assert r"photos \u03bb [red]" in out


def test_version_prints_the_version(tigranet):
    from tigranet import __version__

    assert tigranet("--version")[:2] == (0, f"tigranet {__version__}\n")
    assert tigranet("train", "--version").code == 2  # an option of the program, not of a command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_shells_complete_commands_and_options(warm_process, shell):
    named_shell = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # otherwise it is that of the parent process
    script = warm_process.tigranet("--show-completion", shell, environment=named_shell)
    assert (script.returncode, "_TIGRANET_COMPLETE" in script.stdout) == (0, True), script.stderr
    if shell == "bash":
        for words, completed in (("tigranet pre", "predict"), ("tigranet train --fol", "--folds")):
            environment = {
                "_TIGRANET_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": str(words.count(" ")),
            }
            assert completed in warm_process.tigranet(environment=environment).stdout.split()
