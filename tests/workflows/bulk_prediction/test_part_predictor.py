import pytest

from bulk_sources import write_folder, write_tar
from tigranet.workflows.bulk_prediction.answer_folder import AnswerFolder
from tigranet.workflows.bulk_prediction.part_predictor import (
    WAITING_THREADS,
    AnswerOptions,
    Job,
    PartAnswer,
    PartPredictor,
    load_model,
    read_part_answer,
)
from tigranet.workflows.bulk_prediction.parts import FilePart
from tigranet.workflows.bulk_prediction.source import find_parts


def test_a_written_part_says_what_it_is(tmp_path, model):
    job = Job(str(model), AnswerOptions(), AnswerFolder.at(tmp_path), "sum", device="cpu")
    (part,) = find_parts([str(write_tar(tmp_path / "a.tar", 5))], 10)
    assert PartPredictor(job)(3, part) == PartAnswer(3, 5, 1) == read_part_answer(job.folder, 3, "sum")
    with pytest.raises(ValueError, match="part-000003"):
        read_part_answer(job.folder, 3, "another sum")


def test_a_part_without_any_usable_image_is_written(tmp_path, model):
    job = Job(str(model), AnswerOptions(), AnswerFolder.at(tmp_path), "sum", device="cpu")
    assert PartPredictor(job)(0, FilePart((("a.png", "is a folder"),))) == PartAnswer(0, 1, 1)


@pytest.mark.parametrize(
    "options",
    [AnswerOptions(reject=2.0), AnswerOptions(top=-1), AnswerOptions(unknown=0.9), AnswerOptions(coverage=0.9)],
)
def test_options_are_checked_before_the_work(model, options):
    with pytest.raises(ValueError, match=r"\S"):
        load_model(str(model), options)


def test_a_worker_with_one_core_decodes_where_it_computes_unless_it_may_have_to_wait(tmp_path, model):
    (shard,) = find_parts([str(write_tar(tmp_path / "a.tar", 2))], 10)
    (files,) = find_parts([str(write_folder(tmp_path / "photos", 2))], 10)
    remote = FilePart(("s3://bucket/a.png",))

    def reading_threads(part, threads):
        job = Job(str(model), AnswerOptions(), AnswerFolder.at(tmp_path), "sum", device="cpu", threads=threads)
        return PartPredictor(job)._reading_threads(part)

    assert [reading_threads(part, 1) for part in (shard, files)] == [0, 1]
    assert reading_threads(remote, 1) == reading_threads(remote, 2) == WAITING_THREADS
    assert reading_threads(shard, 2) >= 1
