import pytest

from bulk_sources import write_folder, write_tar
from tigranet.workflows.bulk_prediction.answer_folder import AnswerFolder
from tigranet.workflows.bulk_prediction.plan import PLAN, Identity, make_plan, read_plan
from tigranet.workflows.bulk_prediction.source import find_parts


@pytest.fixture
def plan(tmp_path):
    write_folder(tmp_path / "photos", 5)
    write_tar(tmp_path / "photos" / "a.tar", 4)
    (tmp_path / "answers").mkdir()
    identity = Identity("m", "0" * 64, (str(tmp_path / "photos"),), {"top": 1, "coverage": None})
    return make_plan(AnswerFolder.at(tmp_path / "answers"), identity, 3)


def test_a_plan_is_read_as_it_was_made(plan):
    assert read_plan(plan.folder) == plan
    assert (plan.parts, plan.images) == (4, 9)
    assert list(plan.numbered_parts()) == list(enumerate(find_parts(plan.identity.source, 3)))


@pytest.mark.parametrize(
    "change", [lambda text: text[:-20], lambda text: "", lambda text: text.replace('"format": 1', '"format": 9')]
)
def test_a_damaged_plan_is_refused(plan, tmp_path, change):
    path = tmp_path / "answers" / PLAN
    path.write_text(change(path.read_text()))
    with pytest.raises(ValueError, match=PLAN):
        read_plan(plan.folder)


def test_the_checksum_depends_on_every_line(plan, tmp_path):
    path = tmp_path / "answers" / PLAN
    path.write_text(path.read_text().replace("0001.png", "0009.png"))
    assert read_plan(plan.folder).sha256 != plan.sha256
