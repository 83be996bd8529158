import numpy as np
import pytest

from tigranet.data.npz import read_npz


@pytest.fixture
def path(tmp_path):
    np.savez_compressed(tmp_path / "set.npz", a=np.arange(2000), b=np.eye(3), c=np.array([{}], dtype=object))
    return tmp_path / "set.npz"


def test_arrays_come_in_the_order_asked_for(path):
    b, a = read_npz(path, "b", "a")
    assert np.array_equal(a, np.arange(2000))
    assert np.array_equal(b, np.eye(3))


@pytest.mark.parametrize("name", ["d", "c"])
def test_an_array_that_is_not_there_or_is_a_pickle_is_refused(path, name):
    with pytest.raises(ValueError, match=r"'.*set\.npz' is no whole set\.npz: "):
        read_npz(path, name)


@pytest.mark.parametrize("part", [0, 0.5, 0.99])
def test_a_file_that_is_cut_short_is_refused_wherever_it_ends(path, part):
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"is no whole set\.npz"):
        read_npz(path, "a")
