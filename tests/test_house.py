"""The shape of the package: which way imports point, how light it is, how long the core is."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tigranet

PACKAGE = Path(tigranet.__file__).parent
ROOMS = [  # data flows down this list; imports point up it
    "testing", "atomic_files", "cache_folder", "model_folder",
    "distributed", "graphs", "polynomials", "ops", "layers", "notation", "architecture",
    "pretrained", "model", "baselines", "data", "training", "evaluation", "reproduction", "figures", "estimator",
    "cli",
]  # fmt: skip
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def room(module: str) -> str:
    return module.split(".")[1]


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            if node.module == "tigranet":
                names |= {f"tigranet.{alias.name}" for alias in node.names if alias.name != "__version__"}
            elif node.module:
                names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def name_of(path: Path) -> str:
    return ".".join(("tigranet", *path.relative_to(PACKAGE).with_suffix("").parts))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_up(path):
    for name in imported(path):
        if name.startswith("tigranet."):
            if room(name_of(path)) == "testing":
                pytest.fail(f"testing is for everyone and imports nothing of tigranet, but: {name}")
            assert ROOMS.index(room(name)) <= ROOMS.index(room(name_of(path))), name


def test_training_knows_modules_not_tigranet():
    for path in (PACKAGE / "training").glob("*.py"):
        rooms = {room(name) for name in imported(path) if name.startswith("tigranet.")}
        assert rooms <= {"atomic_files", "model_folder", "data", "training"}


def test_every_room_has_its_place():
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    assert rooms == set(ROOMS)


def test_the_import_is_light():
    code = "import sys, json, tigranet; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    heavy = {
        "lightning",
        "pytorch_lightning",
        "sklearn",
        "matplotlib",
        "scipy",
        "pandas",
        "numba",
        "mlxtend",
        "typer",
        "PIL",
    }
    assert not heavy & set(loaded)


def test_the_command_is_there_before_pytorch_and_a_network_without_its_compiler():
    code = (
        "import sys, tigranet.cli; print('torch' in sys.modules);"
        "tigranet.TIGraNet; print('torch._dynamo' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "False\nFalse\n"


def test_what_the_package_offers_is_there():
    for name in tigranet.__all__:
        assert getattr(tigranet, name).__name__ == name
        assert name in dir(tigranet)
    with pytest.raises(AttributeError, match="module 'tigranet' has no attribute 'Nothing'"):
        tigranet.Nothing  # noqa: B018


def test_the_core_is_read_in_one_sitting():
    """900 lines for the paper's network, and as many more as the oriented one takes beside it: four layers, and in the
    other files image gradients, the carré du champ, one recurrence, smoothing and the notation."""
    core = ("graphs", "polynomials", "layers", "architecture", "model")
    lines = sum(len(path.read_text().splitlines()) for path in MODULES if room(name_of(path)) in core)
    assert lines <= 900 + 500


def test_tests_mirror_the_package():
    tests = Path(__file__).parent
    for path in MODULES:
        relative = path.relative_to(PACKAGE)
        if path.name == "__init__.py" or relative.parts[0] in ("training", "reproduction"):
            continue  # training is tested through fit, experiments through the runner
        assert (tests / relative.with_name(f"test_{relative.name}")).exists(), relative
