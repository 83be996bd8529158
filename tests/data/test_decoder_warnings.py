import threading
import warnings
from contextlib import suppress

import pytest

from tigranet.data.decoder_warnings import without_decoder_warnings


def warn_as(module):
    warnings.warn_explicit("odd", UserWarning, "file.py", 1, module)


@pytest.mark.parametrize("module", ["PIL.TiffImagePlugin", "PIL", "tifffile", "tifffile.tifffile"])
def test_warnings_of_decoders_are_ignored(module):
    with without_decoder_warnings():
        warn_as(module)
    with pytest.warns(UserWarning, match="odd"):
        warn_as(module)


def test_other_warnings_are_shown():
    with without_decoder_warnings(), pytest.warns(UserWarning, match="odd"):
        warn_as("tigranet.data")


def test_the_filters_are_restored_after_an_error_and_after_the_last_of_several_threads():
    before = list(warnings.filters)
    first_has_left, both_are_inside = threading.Event(), threading.Barrier(2)

    def stay():
        with without_decoder_warnings():
            both_are_inside.wait(10)
            assert first_has_left.wait(10)
            warn_as("PIL")

    thread = threading.Thread(target=stay)
    thread.start()
    with suppress(KeyError), without_decoder_warnings():
        both_are_inside.wait(10)
        raise KeyError
    assert warnings.filters != before  # the other thread still decodes
    first_has_left.set()
    thread.join(10)
    assert warnings.filters == before
