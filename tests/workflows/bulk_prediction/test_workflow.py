"""A bulk prediction gives each image exactly one row, with the answer of ``predict``, also after an interruption."""

import json

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bulk_sources import BAD, contents, names_of, read_answers, save_model, write_folder, write_parquet, write_tar
from tigranet.workflows.bulk_prediction import part_predictor, predict_source
from tigranet.workflows.predict import predict

COUNT = 11


def run(model, source, output, **options):
    return predict_source(model, source, output, device="cpu", workers=1, **{"part_size": 4, **options})


@pytest.fixture(scope="module")
def expected(tmp_path_factory, model):
    folder = write_folder(tmp_path_factory.mktemp("expected") / "photos", COUNT)
    return {prediction.path.rsplit("/", 1)[1]: prediction for prediction in predict(model, folder).predictions}


def write_list(path):
    write_folder(path.parent / "listed", COUNT)
    path.write_text("".join(f"listed/{name}\n" for name in contents(COUNT)))
    return path


def write_paths(path):
    write_folder(path.parent / "listed", COUNT)
    pq.write_table(pa.table({"path": [f"listed/{name}" for name in contents(COUNT)]}), path)
    return path


def write_remote_folder(path):
    files = fsspec.filesystem("memory")
    for name, content in contents(COUNT).items():
        files.pipe_file(f"/{path.name}/{name}", content)
    return f"memory://{path.name}"


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: write_folder(folder / "photos", COUNT),
        lambda folder: f"{write_folder(folder / 'photos', COUNT)}/*.png",
        lambda folder: write_parquet(folder / "a.parquet", COUNT),
        lambda folder: write_tar(folder / "a.tar", COUNT),
        lambda folder: write_list(folder / "list.txt"),
        lambda folder: write_paths(folder / "paths.parquet"),
        lambda folder: write_remote_folder(folder),
    ],
    ids=["folder", "pattern", "parquet", "tar", "list", "parquet of paths", "URL"],
)
def test_every_source_gives_the_answers_of_predict(tmp_path, model, expected, make):
    result = run(model, make(tmp_path), tmp_path / "answers")
    rows = read_answers(tmp_path / "answers")
    assert (result.images, result.unreadable, result.resumed_parts) == (COUNT, 1, 0)
    assert names_of(rows) == list(contents(COUNT))
    for name, row in zip(names_of(rows), rows, strict=True):
        if name == f"{BAD:04d}.png":
            assert (row["label"], row["probability"]) == (None, None)
            assert "not an image" in row["error"]
        else:
            assert (row["label"], row["error"]) == (expected[name].label, None)
            assert row["probability"] == pytest.approx(expected[name].probability, abs=1e-5)


def test_answers_can_go_to_a_store_and_be_continued_there(tmp_path, model):
    url = f"memory://{tmp_path.name}-answers"
    source = write_folder(tmp_path / "photos", COUNT)
    run(model, source, url)
    files = fsspec.filesystem("memory")
    manifest = json.loads(files.cat_file(f"/{tmp_path.name}-answers/_manifest.json"))
    assert [part["images"] for part in manifest["parts"]] == [4, 4, 3]
    files.rm_file(f"/{tmp_path.name}-answers/part-000001.parquet")
    result = run(model, source, url)
    assert (result.resumed_parts, result.predicted_images, result.images) == (2, 4, COUNT)


@pytest.fixture
def interrupted(tmp_path, model, monkeypatch):
    """A run that ended while its third part was written, and the source."""
    source, write = write_folder(tmp_path / "photos", COUNT), part_predictor.AnswerFolder.write

    def fail(self, name, content):
        if name == "part-000002.parquet":
            raise OSError("killed")
        write(self, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(part_predictor.AnswerFolder, "write", fail)
        with pytest.raises(OSError, match="killed"):
            run(model, source, tmp_path / "answers")
    return source


def test_the_same_call_continues_with_the_missing_parts_only(tmp_path, model, interrupted):
    answers = tmp_path / "answers"
    before = {path.name: path.stat().st_mtime_ns for path in answers.glob("part-*")}
    assert sorted(before) == ["part-000000.parquet", "part-000001.parquet"]
    assert not (answers / "_manifest.json").exists()
    (interrupted / "9999.png").write_bytes(contents(1)["0000.png"])  # files that come later are not in the plan
    result = run(model, interrupted, answers, part_size=1)
    assert (result.resumed_parts, result.predicted_images) == (2, COUNT - 8)
    assert names_of(read_answers(answers)) == list(contents(COUNT))
    assert {name: (answers / name).stat().st_mtime_ns for name in before} == before


def test_damaged_and_short_files_are_written_again(tmp_path, model, interrupted):
    answers = tmp_path / "answers"
    damaged, short = answers / "part-000000.parquet", answers / "part-000001.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    pq.write_table(pq.read_table(short).slice(0, 2), short)
    assert run(model, interrupted, answers).resumed_parts == 0
    assert names_of(read_answers(answers)) == list(contents(COUNT))


def test_a_complete_folder_is_left_as_it_is(tmp_path, model):
    source, answers = write_tar(tmp_path / "a.tar", COUNT), tmp_path / "answers"
    run(model, source, answers)
    before = {path.name: path.stat().st_mtime_ns for path in answers.iterdir()}
    result = run(model, source, answers)
    assert (result.predicted_images, result.images, result.resumed_parts) == (0, COUNT, 3)
    assert {path.name: path.stat().st_mtime_ns for path in answers.iterdir()} == before


def test_a_folder_of_other_answers_is_refused(tmp_path, model, interrupted):
    answers = tmp_path / "answers"
    other = save_model(tmp_path / "other", 2)
    for arguments, options, words in (
        ((other, interrupted), {}, "model"),
        ((model, tmp_path), {}, "source"),
        ((model, interrupted), {"reject": 0.5}, "options"),
    ):
        with pytest.raises(ValueError, match=f"'{answers}' has answers for another .*{words}"):
            run(*arguments, answers, **options)
    (answers / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"notes\.txt"):
        run(model, interrupted, answers)


def test_a_file_of_another_plan_is_refused(tmp_path, model, interrupted):
    run(model, write_tar(tmp_path / "a.tar", COUNT), tmp_path / "others")
    (tmp_path / "others" / "part-000002.parquet").rename(tmp_path / "answers" / "part-000002.parquet")
    with pytest.raises(ValueError, match=r"part-000002\.parquet"):
        run(model, interrupted, tmp_path / "answers")


def test_a_folder_with_other_files_is_refused(tmp_path, model):
    with pytest.raises(ValueError, match=r"a\.tar"):
        run(model, write_tar(tmp_path / "a.tar", 2), tmp_path)


def test_without_images_there_is_no_plan(tmp_path, model):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no images"):
        run(model, tmp_path / "empty", tmp_path / "answers")
    assert list((tmp_path / "answers").iterdir()) == []


@pytest.mark.parametrize("name", ["workers", "part_size", "batch_size"])
def test_sizes_are_positive(tmp_path, model, name):
    with pytest.raises(ValueError, match=f"{name}.*0"):
        predict_source(model, tmp_path, tmp_path / "answers", **{name: 0})


def test_options_add_columns(tmp_path, model):
    run(model, write_parquet(tmp_path / "a.parquet", 5), tmp_path / "answers", top=1, probabilities=True)
    columns = ["path", "label", "probability", "label_1", "probability_1", "p_0", "p_1", "p_2", "error"]
    assert list(read_answers(tmp_path / "answers")[0]) == columns
