"""Columns of images are found by their names and types, and row groups together give each row once."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bulk_sources import contents, write_parquet
from tigranet.data.image_content import ImageContent, RemoteImage
from tigranet.data.letterbox import UnreadableFile
from tigranet.data.parquet_images import (
    DamagedParquetError,
    NoImageColumnError,
    RowGroups,
    parquet_images,
    row_group_ranges,
)


def read(path, columns):
    pq.write_table(pa.table(columns), path)
    with path.open("rb") as file:
        return list(parquet_images(file, str(path), 0, 1))


@pytest.mark.parametrize(("size", "images"), [(1, [4, 4, 3]), (8, [8, 3]), (100, [11])])
def test_row_groups_are_kept_together(tmp_path, size, images):
    with write_parquet(tmp_path / "a.parquet", 11, rows_per_group=4).open("rb") as file:
        ranges = list(row_group_ranges(file, size))
        rows = [row for each in ranges for row in parquet_images(file, "a.parquet", each.first, each.stop)]
    assert [each.images for each in ranges] == images
    assert isinstance(ranges[0], RowGroups)
    assert {name: image.content for name, image in rows} == contents(11)


def test_columns_of_bytes(tmp_path):
    path, content = tmp_path / "a.parquet", pa.array([b"1", None], pa.large_binary())
    for columns in ({"jpg": content}, {"other": content}, {"image": content, "mask": content}):
        (first, image), (second, missing) = read(path, columns | {"label": [0, 1]})
        assert (first, image) == (f"{path}#0", ImageContent(f"{path}#0", b"1"))
        assert (second, isinstance(missing, UnreadableFile)) == (f"{path}#1", True)
    assert read(path, {"jpg": content, "key": ["a", "b"]})[0] == ("a", ImageContent("a", b"1"))


def test_structures_of_bytes_and_path(tmp_path):
    rows = read(tmp_path / "a.parquet", {"image": [{"bytes": b"1", "path": "x.png"}, {"bytes": None, "path": "y.png"}]})
    assert rows == [("x.png", ImageContent("x.png", b"1")), (f"{tmp_path}/y.png", Path(f"{tmp_path}/y.png"))]


def test_columns_of_paths_and_urls(tmp_path):
    values = ["x.png", "/abs/y.png", "s3://bucket/z.png"]
    rows = read(tmp_path / "a.parquet", {"path": values})
    expected = [Path(f"{tmp_path}/x.png"), Path("/abs/y.png"), RemoteImage("s3://bucket/z.png")]
    assert [image for _, image in rows] == expected
    assert rows[2][0] == "s3://bucket/z.png"
    with (tmp_path / "a.parquet").open("rb") as file:
        (first, image), *_ = parquet_images(file, "s3://bucket/tables/a.parquet", 0, 1)
    assert (first, image) == ("s3://bucket/tables/x.png", RemoteImage("s3://bucket/tables/x.png"))


def test_other_files_are_refused_with_a_reason(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"number": [1]}), path)
    with path.open("rb") as file, pytest.raises(NoImageColumnError, match="'number'"):
        list(row_group_ranges(file, 1))
    pq.write_table(pa.table({"path": ["a.png"]}), path)
    with path.open("rb") as file, pytest.raises(NoImageColumnError):
        list(row_group_ranges(file, 1, accept_paths=False))
    path.write_bytes(b"no Parquet")
    with path.open("rb") as file, pytest.raises(DamagedParquetError):
        list(row_group_ranges(file, 1))
