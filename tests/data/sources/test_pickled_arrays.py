import io
import os
import pickle
import pickletools
import struct
from collections import OrderedDict

import numpy as np
import pytest

from python2_pickles import pickle_python2
from tigranet.data.sources.pickled_arrays import MAX_MEMO_INDEX, unpickle_arrays

BYTES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


class Attack:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_arrays_lists_and_texts_of_python_2_are_read():
    batch = unpickle_arrays(pickle_python2({"label": "batch 1", "labels": [6, 9], "names": ["a", "b"], "data": BYTES}))
    assert batch[b"label"] == b"batch 1"
    assert batch[b"labels"] == [6, 9]
    assert batch[b"names"] == [b"a", b"b"]
    np.testing.assert_array_equal(batch[b"data"], BYTES)
    assert batch[b"data"].dtype == np.uint8


def test_arrays_in_fortran_order_are_read():
    np.testing.assert_array_equal(unpickle_arrays(pickle_python2({"data": BYTES.T}))[b"data"], BYTES.T)


def test_pickles_of_python_2_are_those_of_pickle_itself():
    """The pickles of these tests are valid: Python's own unpickler, with NumPy's own functions, reads the same."""

    class WithNumpy(pickle.Unpickler):
        def find_class(self, module, name):
            if name == "dtype":
                return lambda text, align, copy: np.dtype(text.decode())
            return super().find_class(module.replace("core", "_core"), name)

    batch = WithNumpy(io.BytesIO(pickle_python2({"data": BYTES})), encoding="bytes").load()
    np.testing.assert_array_equal(batch[b"data"], BYTES)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_function_is_named_and_not_called(tmp_path, protocol):
    folder = tmp_path / "made-by-attack"
    with pytest.raises(ValueError, match=r"(posix|nt|os)\.mkdir, which could run code"):
        unpickle_arrays(pickle.dumps({"data": Attack(folder)}, protocol))
    assert not folder.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("__builtin__", "eval"),
        ("numpy", "load"),
        ("numpy", "fromfile"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy.core.multiarray._reconstruct", "__globals__"),
        ("_codecs", "encode"),
        ("copy_reg", "_reconstructor"),
    ],
)
def test_nothing_but_arrays_and_their_types_can_be_referred_to(module, name):
    with pytest.raises(ValueError, match=f"{module}.{name}, which could run code"):
        unpickle_arrays(b"\x80\x02c" + f"{module}\n{name}\n".encode() + b"(U\x04calctR.")


@pytest.mark.parametrize("array", [np.zeros(3), np.array(["a"], object), np.array(["a"])])
def test_arrays_of_other_types_are_refused(array):
    with pytest.raises(ValueError, match=r"bytes|could run code"):
        unpickle_arrays(pickle.dumps({"data": array}, 2))
    if array.dtype != object:
        with pytest.raises(ValueError, match="bytes"):
            unpickle_arrays(pickle_python2({"data": array}))


def test_a_shape_that_does_not_fit_is_refused():
    good = pickle_python2({"data": BYTES})
    with pytest.raises(ValueError, match="reshape"):
        unpickle_arrays(good.replace(b"J" + struct.pack("<i", 3), b"J" + struct.pack("<i", 2**30)))


def test_every_truncated_pickle_is_refused():
    content = pickle_python2({"labels": [6, 9], "data": BYTES})
    for length in range(len(content)):
        with pytest.raises(ValueError, match="pickle"):
            unpickle_arrays(content[:length])


def test_random_damage_is_refused_or_harmless():
    """Whatever a damaged pickle does, there is a dictionary or a ValueError."""
    content = pickle_python2({"labels": [6, 9], "data": BYTES})
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(content)
        for position in rng.integers(0, len(content), 3):
            damaged[position] = rng.integers(256)
        try:
            assert isinstance(unpickle_arrays(bytes(damaged)), dict)
        except ValueError:
            refused += 1
    assert refused > 500


@pytest.mark.parametrize("instruction", [b"r" + struct.pack("<I", 2**31 - 1), b"p2147483647\n"])
def test_a_pickle_cannot_reserve_memory_by_a_large_number(instruction):
    content = b"\x80\x02}" + instruction + b"."
    assert 2**31 - 1 in [argument for _, argument, _ in pickletools.genops(content)]
    with pytest.raises(ValueError, match=f"2147483647, more than {MAX_MEMO_INDEX}"):
        unpickle_arrays(content)


@pytest.mark.parametrize("instruction", [b"b", b"(KKtb", b"N}U\1aK\1s\x86b"])
def test_the_stand_ins_cannot_be_changed(instruction):
    """A pickle may try to set attributes of what it refers to."""
    with pytest.raises(ValueError, match="pickle"):
        unpickle_arrays(b"\x80\x02cnumpy\ndtype\n" + instruction + b".")
    np.testing.assert_array_equal(unpickle_arrays(pickle_python2({"data": BYTES}))[b"data"], BYTES)


@pytest.mark.parametrize("value", [[1, 2], "text", OrderedDict()])
def test_anything_but_a_dictionary_is_refused(value):
    with pytest.raises(ValueError, match=r"dictionary|could run code"):
        unpickle_arrays(pickle.dumps(value, 2))
