from unittest.mock import Mock

import pytest

from tigranet.baselines.gmr_resnet import MissingPackageError
from tigranet.training import Diverged

RUN = "tigranet.reproduction.reproduce.run_experiment"


def test_tables_are_written_from_existing_results(tigranet, monkeypatch, tmp_path):
    monkeypatch.setattr(RUN, lambda *_: pytest.fail("measured"))
    command = ("reproduce", "all", "--render-only", "-o", tmp_path)
    code, _, err = tigranet(*command)
    assert code == 1
    for words in ("table2", str(tmp_path), "table2.jsonl"):
        assert words in err
    for name in ("table4", "oriented"):
        (tmp_path / f"{name}.jsonl").touch()
    code, out, err = tigranet(*command)
    assert code == 0, err
    assert out.count("# ") == 2
    assert "not measured" in out
    assert sorted(path.name for path in tmp_path.glob("*.md")) == ["oriented.md", "table4.md"]


def test_few_images_are_drawn_as_a_curve_beside_the_table(tigranet, tmp_path):
    command = ("reproduce", "few", "--quick", "--epochs", "1", "--method", "ConvNet, 50 images", "-o", tmp_path)
    code, out, err = tigranet(*command)
    assert code == 0, err
    assert "| mnist-rot-mini | 50 | ConvNet |" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "few-quick.csv", "few-quick.jsonl", "few-quick.md", "few-quick.png", "few-quick.svg",
    ]  # fmt: skip
    (tmp_path / "few-quick.png").unlink()
    tigranet("reproduce", "few", "--quick", "--epochs", "1", "--render-only", "-o", tmp_path)
    assert (tmp_path / "few-quick.png").exists()


def test_runs_that_diverge_are_named_at_the_end(tigranet, monkeypatch, tmp_path):
    monkeypatch.setattr(RUN, Mock(side_effect=Diverged("the loss became nan in epoch 1")))
    code, out, err = tigranet("reproduce", "all", "--quick", "--method", "GroupCNN", "-o", tmp_path)
    assert code == 1
    assert out.count("# ") == 6  # all tables that have such experiments are written
    assert "tigranet: 17 runs diverged, and are in no table:\n  table2, mnist-012, seed 0: GroupCNN (C8)\n" in err
    assert "\n  few, mnist-rot-mini, seed 0: GroupCNN (C4), 50 images\n" in err


def test_the_device_reaches_the_training(tigranet, monkeypatch, tmp_path):
    run = Mock(side_effect=Diverged("enough"))
    monkeypatch.setattr(RUN, run)
    tigranet("reproduce", "table2", "--quick", "--method", "STN", "-o", tmp_path, "--device", "cpu")
    assert "cpu" in run.call_args.args


def test_rows_are_listed_and_selected_by_number(tigranet, monkeypatch, tmp_path):
    run = Mock(side_effect=Diverged("enough"))
    monkeypatch.setattr(RUN, run)
    code, out, err = tigranet("reproduce", "photographs", "--list", "-o", tmp_path / "none")
    assert code == 0, err
    assert "| 2 | cifar10 | TIGraNet (pyramid-medium) | none |" in out
    assert not (tmp_path / "none").exists()
    run.assert_not_called()
    code, _, err = tigranet("reproduce", "photographs", "--row", "2", "--row", "6", "--seed", "1", "-o", tmp_path)
    assert code == 1
    assert [call.args[0].kind for call in run.call_args_list] == ["TIGraNet (pyramid-medium)", "ResNet (18 layers)"]
    assert {call.args[2] for call in run.call_args_list} == {1}
    code, _, err = tigranet("reproduce", "all", "--row", "2", "-o", tmp_path)
    assert code == 1
    assert "--row needs one table" in err


def test_runs_that_need_another_package_are_named_at_the_end(tigranet, monkeypatch, tmp_path):
    monkeypatch.setattr(RUN, Mock(side_effect=[MissingPackageError("pip install it"), Diverged("enough")]))
    code, out, err = tigranet("reproduce", "photographs", "--row", "6", "--row", "9", "--seed", "0", "-o", tmp_path)
    assert code == 1
    assert "not measured" in out
    assert "tigranet: 1 runs diverged and 1 runs need a package that is not installed, and are in no table:\n" in err
    assert "photographs, cifar10, seed 0: ResNet (18 layers): pip install it\n" in err
