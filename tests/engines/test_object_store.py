"""Object stores serve images and receive answers: S3, Google Cloud Storage and Azure, as servers on this machine."""

import json

import pyarrow.parquet as pq
import pytest

from bulk_sources import contents, names_of, write_parquet, write_tar
from object_stores import STORES, missing
from tigranet import remote_files
from tigranet.workflows.bulk_prediction import predict_source

pytestmark = pytest.mark.filterwarnings("default")  # the libraries of the stores have warnings of their own

IMAGES = 9


@pytest.fixture(scope="module", params=STORES)
def protocol(request, tmp_path_factory):
    """The protocol of a store that the environment points to. fsspec keeps connections: one store for all tests."""
    if reason := missing(request.param):
        pytest.skip(reason)
    start, _ = STORES[request.param]
    with start(tmp_path_factory.mktemp("store")) as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in {**variables, "NO_PROXY": "127.0.0.1"}.items():
            patch.setenv(name, value)
        remote_files._file_system.cache_clear()
        yield request.param
    remote_files._file_system.cache_clear()


@pytest.fixture
def store(protocol):
    """The files of an empty bucket, or container as Azure calls it."""
    import fsspec

    files = fsspec.filesystem(protocol)
    files.mkdir("bucket")
    yield files
    files.rm("bucket", recursive=True)


@pytest.fixture
def predict(model, protocol):
    def run(source):
        options = {"part_size": 4, "workers": 1, "device": "cpu", "batch_size": 4}
        return predict_source(model, f"{protocol}://bucket/{source}", f"{protocol}://bucket/answers", **options)

    return run


def rows_of(store):
    manifest = json.loads(store.cat_file("bucket/answers/_manifest.json"))
    rows = []
    for part in manifest["parts"]:
        with store.open(f"bucket/answers/{part['file']}") as file:
            rows += pq.read_table(file).to_pylist()
    assert manifest["images"] == len(rows)
    return rows


def test_images_and_answers_in_a_bucket(store, protocol, predict):
    for name, content in contents(IMAGES).items():
        store.pipe_file(f"bucket/photos/{name}", content)
    assert predict("photos").parts == 3
    rows = rows_of(store)
    assert [row["path"] for row in rows] == [f"{protocol}://bucket/photos/{name}" for name in contents(IMAGES)]
    assert sum(row["error"] is not None for row in rows) == 1

    store.rm_file("bucket/answers/part-000001.parquet")
    store.rm_file("bucket/photos/0005.png")
    result = predict("photos")
    assert (result.resumed_parts, result.predicted_images, result.unreadable) == (2, 4, 2)
    assert rows_of(store)[5]["error"] == "no such file"


@pytest.mark.parametrize("write", [write_tar, write_parquet])
def test_shards_in_a_bucket(store, predict, tmp_path, write):
    suffix = write.__name__.removeprefix("write_")
    store.put_file(str(write(tmp_path / f"a.{suffix}", IMAGES)), f"bucket/shards/a.{suffix}")
    assert predict(f"shards/*.{suffix}").images == IMAGES
    assert names_of(rows_of(store)) == list(contents(IMAGES))
