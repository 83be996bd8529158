"""An object store serves images and receives answers: moto's S3 server on the loopback address."""

import json

import pyarrow.parquet as pq
import pytest

from bulk_sources import contents, names_of, write_tar
from tigranet.workflows.bulk_prediction import predict_source

moto_server = pytest.importorskip("moto.server", reason="moto is not installed: 'make test-engines' installs it")
pytest.importorskip("s3fs", reason="s3fs is not installed: 'make test-engines' installs it")
pytestmark = pytest.mark.filterwarnings("default")  # botocore has warnings of its own

IMAGES = 9


@pytest.fixture(scope="module")
def _server():
    """An S3 server that the environment points to. fsspec keeps its connections, so there is one for all tests."""
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
        }.items():
            patch.setenv(name, value)
        yield
    server.stop()


@pytest.fixture
def store(_server):
    """The files of an empty bucket."""
    import s3fs

    files = s3fs.S3FileSystem()
    files.mkdir("bucket")
    yield files
    files.rm("bucket", recursive=True)


@pytest.fixture
def predict(model):
    def run(source):
        return predict_source(model, source, "s3://bucket/answers", part_size=4, workers=1, device="cpu", batch_size=4)

    return run


def rows_of(store):
    manifest = json.loads(store.cat_file("bucket/answers/_manifest.json"))
    rows = []
    for part in manifest["parts"]:
        with store.open(f"bucket/answers/{part['file']}") as file:
            rows += pq.read_table(file).to_pylist()
    assert manifest["images"] == len(rows)
    return rows


def test_images_and_answers_in_a_bucket(store, predict):
    for name, content in contents(IMAGES).items():
        store.pipe_file(f"bucket/photos/{name}", content)
    assert predict("s3://bucket/photos").parts == 3
    rows = rows_of(store)
    assert [row["path"] for row in rows] == [f"s3://bucket/photos/{name}" for name in contents(IMAGES)]
    assert sum(row["error"] is not None for row in rows) == 1

    store.rm_file("bucket/answers/part-000001.parquet")
    store.rm_file("bucket/photos/0005.png")
    result = predict("s3://bucket/photos")
    assert (result.resumed_parts, result.predicted_images, result.unreadable) == (2, 4, 2)
    assert rows_of(store)[5]["error"] == "no such file"


def test_a_tar_file_in_a_bucket(store, predict, tmp_path):
    store.put_file(str(write_tar(tmp_path / "a.tar", IMAGES)), "bucket/shards/a.tar")
    assert predict("s3://bucket/shards/*.tar").images == IMAGES
    assert names_of(rows_of(store)) == list(contents(IMAGES))
