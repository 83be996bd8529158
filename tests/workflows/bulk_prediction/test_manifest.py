import pytest

from bulk_sources import write_folder
from tigranet.workflows.bulk_prediction.answer_folder import AnswerFolder
from tigranet.workflows.bulk_prediction.manifest import MANIFEST, write_manifest
from tigranet.workflows.bulk_prediction.part_predictor import PartAnswer
from tigranet.workflows.bulk_prediction.plan import Identity, make_plan


@pytest.mark.parametrize("images", [(2, 2), (2, 2, 2), (2, 1, 1)], ids=["a part", "an image twice", "an image lost"])
def test_a_folder_that_is_not_complete_has_no_manifest(tmp_path, images):
    write_folder(tmp_path / "photos", 5)
    (tmp_path / "answers").mkdir()
    plan = make_plan(AnswerFolder.at(tmp_path / "answers"), Identity("m", "0", (str(tmp_path / "photos"),), {}), 2)
    answers = {number: PartAnswer(number, count, 0) for number, count in enumerate(images)}
    with pytest.raises(RuntimeError, match="5 in 3"):
        write_manifest(plan, answers)
    assert not (tmp_path / "answers" / MANIFEST).exists()
    write_manifest(plan, {number: PartAnswer(number, count, 0) for number, count in enumerate((2, 2, 1))})
    assert (tmp_path / "answers" / MANIFEST).exists()
