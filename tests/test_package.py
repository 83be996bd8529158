"""The package as a whole: what importing it loads, what it exports, and that every module has a test file.

Import direction is checked by the import-linter contracts in pyproject.toml (``make lint``).
"""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from PIL import Image

import tigranet
from tigranet import training
from warm_process import WarmProcess

PACKAGE = Path(tigranet.__file__).parent
TESTS = Path(__file__).parent
HEAVY = {
    "PIL", "lightning", "matplotlib", "mlxtend", "numba", "pandas", "pooch", "pyarrow", "pytorch_lightning", "scipy",
    "sklearn", "tensorboard", "tifffile", "torchmetrics", "typer",
}  # fmt: skip
LOADED_BY_SCIKIT_LEARN = {"pandas", "pyarrow", "scipy", "sklearn"}


def loaded_by(code: str, torch_process: WarmProcess | None = None) -> set[str]:
    """Return the names of all modules that are loaded after ``code`` has run, if necessary after PyTorch."""
    script, kernels = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))", {"TIGRANET_KERNELS": "auto"}
    if torch_process is None:
        command = [sys.executable, "-c", script]
        process = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | kernels)
    else:
        process = torch_process.run(script, environment=kernels)
    assert process.returncode == 0, process.stderr
    return set(json.loads(process.stdout.splitlines()[-1]))


def top_level(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def test_importing_the_package_loads_not_even_pytorch():
    assert not top_level(loaded_by("import tigranet")) & {"torch", "numpy", *HEAVY}


def test_importing_a_network_loads_nothing_heavy_besides_pytorch(torch_process):
    modules = loaded_by("from tigranet import TIGraNet", torch_process)
    assert "tigranet.model" in modules  # the lazy import has happened
    assert "torch" in modules
    assert not top_level(modules) & HEAVY
    assert "torch._dynamo" not in modules


def test_estimators_and_workflows_that_need_not_train_load_neither_training_nor_kernels(torch_process):
    modules = loaded_by(
        "from tigranet import InvariantFeatures, TIGraNetClassifier\n"
        "import tigranet.workflows.compare, tigranet.workflows.figures, tigranet.workflows.report",
        torch_process,
    )
    assert {"tigranet.estimator", "tigranet.workflows.report"} < modules
    assert not top_level(modules) & (HEAVY - LOADED_BY_SCIKIT_LEARN - {"PIL"})
    assert "torch._dynamo" not in modules


def test_predicting_a_few_files_loads_neither_training_nor_kernels_nor_scikit_learn(tmp_path, torch_process):
    path = tmp_path / "digit.png"
    Image.new("L", (28, 28), 128).save(path)
    modules = loaded_by(
        "import tigranet.workflows.evaluate\n"
        "from tigranet.workflows.features import features\n"
        "from tigranet.workflows.predict import predict\n"
        f"assert len(predict('oriented-mnist-012', {str(path)!r}).predictions) == 1\n"
        f"assert len(features('paper-mnist-012', {str(path)!r}).values) == 1",
        torch_process,
    )
    assert not top_level(modules) & (HEAVY - {"PIL"})
    assert "torch._dynamo" not in modules


def test_the_names_of_the_training_package_are_those_of_its_modules():
    for name in training.__all__:
        assert name in dir(training)
        assert getattr(training, name) is getattr(import_module(training._MODULES[name]), name)
    with pytest.raises(AttributeError, match=r"'tigranet\.training'.*'Nothing'"):
        training.Nothing  # noqa: B018


def test_the_command_line_loads_before_pytorch():
    modules = loaded_by("import tigranet.cli.app")
    assert "typer" in modules
    assert "torch" not in modules


def test_every_public_name_exists():
    for name in tigranet.__all__:
        assert getattr(tigranet, name).__name__ == name
        assert name in dir(tigranet)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'tigranet'.*'Nothing'"):
        tigranet.Nothing  # noqa: B018


def test_every_module_has_a_test_file():
    """The kernels of an operation may be tested through the operation, one folder above."""

    def has_test_file(module: Path) -> bool:
        test_file = module.with_name(f"test_{module.name}")
        places = [TESTS / test_file] + [TESTS / "ops" / test_file.name] * (module.parts[:2] == ("ops", "cpu"))
        return any(place.exists() for place in places)

    modules = [path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py"]
    assert len(modules) > 100
    assert [str(module) for module in modules if not has_test_file(module)] == []
