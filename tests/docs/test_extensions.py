"""The extensions of the documentation site. ``make lint`` builds the site with them."""

import sys
from pathlib import Path

import pytest
import typer
from docutils import nodes

import tigranet
import tigranet.layers
from tigranet.cli.app import app

EXTENSIONS = Path(__file__).parent.parent.parent / "docs" / "extensions"


@pytest.fixture(scope="module", autouse=True)
def _extensions():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXTENSIONS)
        yield
        for name in ("command_reference", "gallery_programs", "mathml", "public_names"):
            sys.modules.pop(name, None)


def test_the_command_reference_has_every_command_with_its_options():
    from command_reference import _leaves, _table

    commands = dict(_leaves("tigranet", typer.main.get_command(app)))
    assert {"tigranet train", "tigranet predict", "tigranet data list"} <= commands.keys()
    table = _table(commands["tigranet train"].params).astext()
    for text in ("--output", "-o", "PATH", "free | torus", "default: free", "(required)"):
        assert text in table
    assert all(name in table for parameter in commands["tigranet train"].params for name in parameter.opts[1:])


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("See --quick, `tigranet data list` and ``x``.", ["--quick", "tigranet data list", "x"]),
        ("A well-known --size", ["--size"]),
        ("none", []),
    ],
)
def test_options_and_words_between_backticks_are_literals(text, literals):
    from command_reference import _inline

    parts = _inline(text)
    assert [part.astext() for part in parts if isinstance(part, nodes.literal)] == literals
    assert "".join(part.astext() for part in parts) == text.replace("`", "")


def test_public_names_are_those_of_the_packages_and_of_the_workflows():
    from public_names import public_objects

    objects = public_objects()
    assert {f"tigranet.{name}" for name in tigranet.__all__} <= objects.keys()
    assert objects["tigranet.layers.SpectralConv"] is tigranet.layers.SpectralConv
    workflows = {
        "train.train",
        "trained_model.TrainedModel",
        "predict.predict",
        "first_answer.FirstAnswer",
        "compare.compare",
    }
    assert {f"tigranet.workflows.{name}" for name in workflows} <= objects.keys()
    assert "tigranet.testing.invariance_error" in objects
    assert not any(name.rpartition(".")[2].startswith("_") for name in objects)


def test_a_formula_that_cannot_be_converted_is_shown_as_it_is_with_a_warning(monkeypatch):
    import mathml

    warnings: list[str] = []
    monkeypatch.setattr(mathml.logger, "warning", lambda text, *arguments, **options: warnings.append(text % arguments))
    assert "<msub>" in mathml.convert(r"z_i, \dots", nodes.math(), as_block=False)
    assert not warnings
    assert mathml.convert(r"\unheardof < 1", nodes.math(), as_block=False) == r"<code>\unheardof &lt; 1</code>"
    assert len(warnings) == 1


def test_every_program_that_the_gallery_runs_exists_and_has_a_title():
    from gallery_programs import ARGUMENTS

    programs = {path.stem: path for path in (EXTENSIONS.parent.parent / "examples").glob("*.py")}
    assert ARGUMENTS.keys() <= programs.keys()
    for path in programs.values():
        first, title, line = path.read_text().splitlines()[:3]
        assert first == '"""', f"the docstring of {path.name} starts with a title on a line of its own"
        assert line == "=" * len(title)
