import io
import os
import struct
import zipfile

import numpy as np
import pytest

from tigranet.data import npz_file
from tigranet.data.npz_file import open_npz, read_npz


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
    with pytest.raises(ValueError, match=r"text\.npz.*not that of an \.npz file") as error:
        read_npz(tmp_path / "text.npz")
    assert "pickle" not in str(error.value)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def write_zip(path, entries, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def test_only_the_arrays_in_use_are_unpacked(path):
    with open_npz(path) as arrays:
        assert arrays.names == ("a", "b", "c")
        assert arrays.header("a").shape == (2000,)
        assert np.array_equal(arrays.read("b"), np.eye(3))  # c, which holds objects, does not matter


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["u1", "f8", "U3", "S2", "?"])
def test_blocks_are_the_whole_array(tmp_path, monkeypatch, kind, order):
    monkeypatch.setattr(npz_file, "BLOCK_BYTES", 50)
    array = np.asarray(np.arange(7 * 4 * 3).reshape(7, 4, 3).astype(kind), order=order)
    np.savez_compressed(tmp_path / "a.npz", a=array)
    with open_npz(tmp_path / "a.npz") as arrays:
        blocks = list(arrays.blocks("a"))
        assert len(blocks) > 1 or order == "F"
        assert np.array_equal(np.concatenate(blocks), array)
        assert np.array_equal(arrays.read("a"), array)


def test_an_array_that_is_too_large_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros(10**6))
    monkeypatch.setattr(npz_file, "MAX_PACKED_ARRAY_BYTES", 10**6)
    with pytest.raises(ValueError, match=r"a\.npz.*'a'.*8,000,128 bytes compressed.*150 to 1"):
        read_npz(tmp_path / "a.npz", "a")
    monkeypatch.setattr(npz_file, "MAX_ARRAY_BYTES", 10**6)
    with pytest.raises(ValueError, match=r"a\.npz.*'a'.*8,000,128 bytes, more than 1,000,000"):
        read_npz(tmp_path / "a.npz", "a")


@pytest.mark.parametrize("change", [b"(3000,)", b"(1,   )", b"(-1,  )", b"(10**9)"])
def test_a_header_that_does_not_agree_with_the_size_is_refused(tmp_path, change):
    content = npy(np.arange(2000, dtype=np.int64)).replace(b"(2000,)", change)
    with pytest.raises(ValueError, match=r"a\.npz"):
        read_npz(write_zip(tmp_path / "a.npz", [("a.npy", content)]), "a")


def test_a_directory_that_claims_another_size_is_refused(tmp_path):
    path = write_zip(tmp_path / "a.npz", [("a.npy", npy(np.zeros(10**5)))])
    content = bytearray(path.read_bytes())
    size = struct.pack("<I", 10**5 * 8 + 128)
    place = content.rindex(size)
    content[place : place + 4] = struct.pack("<I", 128 + 80)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.npz"):
        read_npz(path, "a")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(tmp_path):
    path = write_zip(tmp_path / "a.npz", [("a.npy", npy(np.arange(3))), ("a.npy", npy(np.arange(4)))])
    with pytest.raises(ValueError, match=r"a\.npz.*two arrays.*'a'"):
        read_npz(path, "a")


def test_encrypted_and_oddly_compressed_files_are_refused(tmp_path):
    path = write_zip(tmp_path / "a.npz", [("a.npy", npy(np.arange(3)))])
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.npz.*encrypted"):
        read_npz(path, "a")
    path = write_zip(tmp_path / "b.npz", [("a.npy", npy(np.arange(3)))], zipfile.ZIP_LZMA)
    with pytest.raises(ValueError, match=r"b\.npz.*compression"):
        read_npz(path, "a")


def test_too_many_arrays_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_file, "MAX_ENTRIES", 3)
    path = write_zip(tmp_path / "a.npz", [(f"{number}.npy", b"") for number in range(4)])
    with pytest.raises(ValueError, match=r"a\.npz.*4 entries"):
        read_npz(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"a\.npz.*pipe"):
        read_npz(tmp_path / "a.npz")


def test_an_array_of_zeros_does_not_fill_the_memory(tmp_path, warm_process):
    """A small file with 300 MB of images beside valid labels is refused within 100 MB."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("labels.npy", npy(np.arange(1000) % 2))
        header = io.BytesIO()
        description = {"descr": "|u1", "fortran_order": False, "shape": (1000, 1000, 300)}
        np.lib.format.write_array_header_1_0(header, description)
        with archive.open("images.npy", "w") as file:
            file.write(header.getvalue())
            for _ in range(300):
                file.write(bytes(10**6))
    code = (
        "import sys; from pathlib import Path; from tigranet.data.npz_data import read_npz_images\n"
        "peak = lambda: int(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]) // 1024\n"
        "start = peak()\n"
        "try: read_npz_images(Path(sys.argv[1]))\n"
        "except ValueError as error: print(error)\n"
        "print(peak() - start)"
    )
    process = warm_process.run(code, tmp_path / "a.npz", timeout=60)
    assert process.returncode == 0, process.stderr
    reason, growth = process.stdout.splitlines()
    assert "300,000,128 bytes compressed" in reason
    assert int(growth) < 100
