"""A part always gives the same images, also after its way through JSON, or says that its file has changed."""

import json

import pytest

from bulk_sources import contents, names_of, write_parquet, write_tar
from tigranet.workflows.bulk_prediction.parts import FilePart, ParquetPart, TarPart, part_from_json, part_to_json
from tigranet.workflows.bulk_prediction.source import find_parts


@pytest.mark.parametrize(
    "part",
    [
        FilePart(("a.png", ("b\udcff.png", "is a named pipe"), "s3://c/d.png")),
        TarPart("s3://a.tar", None, 0, None),
        ParquetPart("/a.parquet", 12, 0, 3, 5, False),
    ],
)
def test_parts_survive_the_way_through_json(part):
    assert part_from_json(json.loads(json.dumps(part_to_json(part)))) == part


@pytest.mark.parametrize("values", [{}, {"files": [1]}, {"tar": "a.tar"}, {"parquet": "a", "more": 1}])
def test_other_objects_are_no_parts(values):
    with pytest.raises(ValueError, match="expected a part"):
        part_from_json(values)


@pytest.mark.parametrize(("write", "name"), [(write_tar, "a.tar"), (write_parquet, "a.parquet")])
def test_a_shard_that_has_changed_is_not_read(tmp_path, write, name):
    path = write(tmp_path / name, 6)
    (part, *_) = find_parts([str(path)], 100)
    assert names_of([{"path": image} for image, _ in part.read()]) == list(contents(6))
    write(path, 5)
    if path.stat().st_size == part.num_bytes:  # tar files are padded
        path.write_bytes(path.read_bytes() + bytes(512))
    with pytest.raises(OSError, match=f"{name}.*changed"):
        list(part.read())
