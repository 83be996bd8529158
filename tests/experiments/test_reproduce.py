import json

import pytest
import torch

from tigranet.data import DataSet, Labelled
from tigranet.experiments import reproduce as module
from tigranet.experiments.reproduce import as_markdown, build, reproduce
from tigranet.experiments.tables import TABLES, Row


@pytest.fixture
def small(monkeypatch, mnist_012):
    """MNIST-012 with a tenth of its images."""
    parts = [Labelled(part.images[:20], part.labels[:20]) for part in (mnist_012.train, mnist_012.test, mnist_012.test)]
    loaded = []

    def load(name, seed, folder):
        loaded.append((name, seed))
        return DataSet(name, mnist_012.class_names, *parts)

    module._data.cache_clear()
    monkeypatch.setattr(module, "load", load)
    yield loaded
    module._data.cache_clear()


METHODS = ("ConvNet", "TIGraNet")


def test_a_table_is_measured_row_by_row_and_set_beside_the_papers(small, tmp_path):
    text = reproduce("table2", tmp_path, quick=True, epochs=1, methods=METHODS)
    lines = [json.loads(line) for line in (tmp_path / "table2-quick.jsonl").read_text().splitlines()]
    assert [line["row"] for line in lines] == [
        "ConvNet (trained on turned images)", "ConvNet", "TIGraNet", "TIGraNet (no jitter)",
    ]  # fmt: skip
    assert [line["recipe"]["turned"] for line in lines] == [True, False, False, False]
    assert lines[3]["recipe"]["jitter"] == 0
    assert {"versions", "machine", "seconds", "moved", "nearest", "test"} <= set(lines[0])
    assert (tmp_path / "table2-quick.md").read_text() == text
    (ours,) = (line for line in text.splitlines() if "| TIGraNet |" in line)
    assert f"{lines[2]['moved']['mean']:.1f} | 94 ± 0.42" in ours


def test_what_was_measured_is_not_measured_again(small, tmp_path, monkeypatch):
    first = reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS)
    whole = (tmp_path / "table2.jsonl").read_text()
    (tmp_path / "table2.jsonl").write_text("".join(whole.splitlines(keepends=True)[:2]))  # broken off
    assert reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS).count("|") == first.count("|")
    assert len((tmp_path / "table2.jsonl").read_text().splitlines()) == 4
    monkeypatch.setattr(module, "_measure", lambda *_: pytest.fail("measured again"))
    reproduce("table2", tmp_path, seeds=[0], epochs=1, methods=METHODS)


def test_a_quick_run_takes_the_small_sets_by_their_own_names(small, tmp_path):
    text = reproduce("table3", tmp_path, quick=True, epochs=1, methods=["ConvNet"])
    assert {name for name, _ in small} == {"mnist-rot-mini", "mnist-trans-mini"}
    assert "| mnist-rot-mini | ConvNet |" in text


def test_a_network_that_fits_itself_is_measured_like_the_others(small, tmp_path):
    text = reproduce("table4", tmp_path, seeds=[0], methods=["DeepScat"])
    (line,) = (json.loads(line) for line in (tmp_path / "table4.jsonl").read_text().splitlines())
    assert f"| eth80 | DeepScat | {line['test']:.1f} | 87.3 |" in text
    assert line["train"] > 90


def test_the_mean_and_deviation_are_over_seeds():
    table = TABLES["table4"]
    row = Row("TIGraNet", "eth80", "paper", ("95.1",))
    lines = [{"row": row.name, "data": "eth80", "seed": seed, "test": 90.0 + seed, "parameters": 7} for seed in (0, 2)]
    text = as_markdown(table, [row, Row("HarmNet", "eth80", "paper", ("94.0",))], lines)
    assert "| eth80 | TIGraNet | 91.0 ± 1.4 | 95.1 | 7 | 2 |" in text
    assert "| eth80 | HarmNet | not measured | 94.0 | - | 0 |" in text


def test_the_figures_of_the_paper_are_those_it_prints():
    printed = {
        "table2": ["99 94 78 ± 2.1", "100 97 93 ± 0.97", "100 100 55 ± 5", "100 98 50 ± 5", "98 97 94 ± 0.42"],
        "table3": ["44.3", "44.5", "83.8", "43.5", "67.1", "79.6"],
        "table4": ["45.1", "80.1", "87.3", "94.0", "95.1"],
    }
    for name, table in TABLES.items():
        assert [" ".join(row.reported) for row in table.rows if row.reported] == printed[name]
        assert len({(row.name, row.data) for row in table.rows}) == len(table.rows)


def test_networks_are_built_for_the_images(small):
    data = module._data("mnist-012", 0, None)
    for table in TABLES.values():
        for row in table.rows:
            net = build(row, data)
            if row.method != "DeepScat":  # it has no answer before it is fitted
                assert net.eval()(torch.rand(2, 1, 28, 28)).shape == (2, 3)


def test_another_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no 'table1': there are table2, table3, table4"):
        reproduce("table1", tmp_path)
