import numpy as np
import pytest

from tigranet.data.npz_file import read_npz


@pytest.fixture
def path(tmp_path):
    np.savez_compressed(tmp_path / "set.npz", a=np.arange(2000), b=np.eye(3), c=np.array([{}], dtype=object))
    return tmp_path / "set.npz"


def test_arrays_come_in_the_order_asked_for(path):
    b, a = read_npz(path, "b", "a").values()
    assert np.array_equal(a, np.arange(2000))
    assert np.array_equal(b, np.eye(3))


@pytest.mark.parametrize("name", ["d", "c"])
def test_an_array_that_is_not_there_or_is_a_pickle_is_refused(path, name):
    with pytest.raises(ValueError, match=r"'.*set\.npz' cannot be read as NumPy's \.npz: "):
        read_npz(path, name)


@pytest.mark.parametrize("part", [0, 0.5, 0.99])
def test_a_file_that_is_cut_short_is_refused_wherever_it_ends(path, part):
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"set\.npz' cannot be read as NumPy's \.npz"):
        read_npz(path, "a")


def test_all_arrays_come_if_none_is_named(tmp_path):
    np.savez(tmp_path / "two.npz", x=np.arange(3), y=np.arange(4))
    assert {name: array.tolist() for name, array in read_npz(tmp_path / "two.npz").items()} == {
        "x": [0, 1, 2],
        "y": [0, 1, 2, 3],
    }


def test_a_single_array_is_refused_and_a_missing_file_is_called_missing(tmp_path):
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.eye(3))
    with pytest.raises(ValueError, match=r"one\.npz' cannot be read as NumPy's \.npz: it is a single array"):
        read_npz(tmp_path / "one.npz", "a")
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "none.npz", "a")


@pytest.mark.parametrize("text", ["path,label", "PK nothing"])
def test_a_text_is_no_npz_file_and_no_pickle_is_spoken_of(tmp_path, text):
    (tmp_path / "text.npz").write_text(text)
    with pytest.raises(ValueError, match=r"text\.npz' cannot be read as NumPy's \.npz: it is no \.npz file") as refused:
        read_npz(tmp_path / "text.npz")
    assert "pickle" not in str(refused.value)
