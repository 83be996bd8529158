import numpy as np
import pytest

from tigranet.data.npz_file import read_npz


@pytest.fixture
def path(tmp_path):
    np.savez_compressed(tmp_path / "set.npz", a=np.arange(2000), b=np.eye(3), c=np.array([{}], dtype=object))
    return tmp_path / "set.npz"


def test_arrays_have_the_order_of_the_names(path):
    b, a = read_npz(path, "b", "a").values()
    assert np.array_equal(a, np.arange(2000))
    assert np.array_equal(b, np.eye(3))


@pytest.mark.parametrize("name", ["d", "c"])
def test_a_missing_array_and_a_pickle_are_refused(path, name):
    with pytest.raises(ValueError, match=r"set\.npz.*\.npz: "):
        read_npz(path, name)


@pytest.mark.parametrize("fraction", [0, 0.5, 0.99])
def test_a_truncated_file_is_refused(path, fraction):
    path.write_bytes(path.read_bytes()[: int(fraction * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"set\.npz.*\.npz: "):
        read_npz(path, "a")


def test_without_names_all_arrays_are_read(tmp_path):
    np.savez(tmp_path / "two.npz", x=np.arange(3), y=np.arange(4))
    assert {name: array.tolist() for name, array in read_npz(tmp_path / "two.npz").items()} == {
        "x": [0, 1, 2],
        "y": [0, 1, 2, 3],
    }


def test_a_single_array_is_refused(tmp_path):
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.eye(3))
    with pytest.raises(ValueError, match=r"one\.npz.*single array"):
        read_npz(tmp_path / "one.npz", "a")


def test_a_missing_file_is_not_called_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        read_npz(tmp_path / "none.npz", "a")


@pytest.mark.parametrize("text", ["path,label", "PK nothing"])
def test_a_text_file_is_refused_without_advice_about_pickles(tmp_path, text):
    (tmp_path / "text.npz").write_text(text)
    with pytest.raises(ValueError, match=r"text\.npz.*no \.npz file") as error:
        read_npz(tmp_path / "text.npz")
    assert "pickle" not in str(error.value)
