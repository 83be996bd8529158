"""The division into parts depends on the names only."""

import os

import pytest

from bulk_sources import contents, write_folder, write_parquet, write_tar
from tigranet.workflows.bulk_prediction.parts import FilePart, ParquetPart, TarPart
from tigranet.workflows.bulk_prediction.source import absolute_sources, find_parts


def test_a_folder_may_hold_images_and_shards(tmp_path):
    write_folder(tmp_path / "photos", 5)
    write_tar(tmp_path / "b.tar", 3)
    write_parquet(tmp_path / "c.parquet", 4)
    (tmp_path / "broken.tar").write_bytes(b"no tar file")
    (tmp_path / "broken.parquet").write_bytes(b"no Parquet file")
    os.symlink("nowhere", tmp_path / "dangling.png")
    parts = list(find_parts([str(tmp_path)], 4))
    assert sum(part.images for part in parts) == 5 + 3 + 4 + 3
    files = [file for part in parts if isinstance(part, FilePart) for file in part.files]
    assert [file for file in files if isinstance(file, str)] == [f"{tmp_path}/photos/{name}" for name in contents(5)]
    unusable = {os.path.basename(file) for file, _ in (file for file in files if isinstance(file, tuple))}
    assert unusable == {"broken.tar", "broken.parquet", "dangling.png"}
    assert {type(part) for part in parts} == {FilePart, TarPart, ParquetPart}
    assert list(find_parts([str(tmp_path)], 4)) == parts


def test_tables_of_paths_in_a_folder_are_not_images(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_folder(tmp_path / "photos", 2)
    table = tmp_path / "photos" / "answers.parquet"
    pq.write_table(pa.table({"path": ["0000.png"], "label": ["0"]}), table)
    assert [part.images for part in find_parts([str(tmp_path)], 10)] == [2]
    assert [part.images for part in find_parts([str(table)], 10)] == [1]
    pq.write_table(pa.table({"number": [1]}), table)
    with pytest.raises(ValueError, match=r"answers\.parquet.*'number'"):
        list(find_parts([str(table)], 10))


def test_missing_sources(tmp_path):
    for source in (tmp_path / "none", tmp_path / "*.png"):
        with pytest.raises(FileNotFoundError, match=str(tmp_path)):
            list(find_parts([str(source)], 4))
    with pytest.raises(ValueError, match="'-'"):
        list(find_parts(absolute_sources("-"), 4))


def test_names_of_sources_are_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert absolute_sources(["a", "s3://b", "file:///c"]) == (f"{tmp_path}/a", "s3://b", "/c")
