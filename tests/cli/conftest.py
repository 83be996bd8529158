import sys
from typing import NamedTuple

import pytest
from PIL import Image

from shortened_results import shorten_results
from tigranet.cli import main


class Finished(NamedTuple):
    """How a command ended, and what it printed."""

    code: int | None
    out: str
    err: str


@pytest.fixture(autouse=True)
def _shortened_results(request):
    shorten_results(request)


@pytest.fixture
def tigranet(monkeypatch, capsys):
    """Run the command in this process, as a function of its arguments."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tigranet", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            main()
        return Finished(exit_info.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def photos(tmp_path_factory, mnist_012):
    """Forty upright digits in one folder per class, and one broken file."""
    folder = tmp_path_factory.mktemp("photos")
    for number, (image, label) in enumerate(zip(*mnist_012.train[:2], strict=True)):
        if number < 40:
            (folder / f"digit {label}").mkdir(exist_ok=True)
            Image.fromarray((image[0] * 255).byte().numpy()).save(folder / f"digit {label}" / f"{number}.png")
    (folder / "digit 1" / "broken.png").write_bytes(b"")
    return folder
