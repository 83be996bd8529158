"""Trainings and reports without the parts that take most of their time, for tests of everything else."""

from importlib import import_module
from importlib.util import find_spec

import pytest


def shorten_results(request: pytest.FixtureRequest) -> None:
    """Leave out of trainings and reports what takes most of their time, except in tests that use ``whole_results``.

    Test images are rotated twice instead of ten times, and neither the picture of a training nor the figures of a
    report are drawn.
    """
    if "whole_results" not in request.fixturenames:
        request.getfixturevalue("undrawn_figures")
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr(import_module("tigranet.evaluation.accuracy"), "MAX_DRAWS", 2)
        if find_spec("matplotlib") is not None:
            monkeypatch.setattr(
                "tigranet.figures.rotated_examples.save_rotated", lambda path, *_: path.write_bytes(b"a picture")
            )
