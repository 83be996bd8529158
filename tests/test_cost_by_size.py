"""The cost table: rows are measured once, continued, limited in time, and compared with the baseline."""

import csv

import pytest
import torch
from benchmarks import cost_by_size, cost_measurement, cost_networks, cost_report, peers
from torch import nn

CPU = torch.device("cpu")


def tiny_network(size):
    return nn.Sequential(nn.Flatten(), nn.Linear(size**2, 10))


TINY = {
    "pyramid-small": cost_networks.CostCandidate(tiny_network),
    "resnet18": cost_networks.CostCandidate(tiny_network),
    "absent": cost_networks.CostCandidate(tiny_network, needs="no_such_package"),
}


@pytest.fixture
def tiny_networks(monkeypatch):
    monkeypatch.setattr(cost_networks, "candidates", lambda: TINY)
    monkeypatch.setattr(cost_by_size, "MEASUREMENT_SECONDS", {"cpu": 1e-3})
    monkeypatch.setattr(cost_by_size, "limit_rows", lambda *_: iter([limit_row("copy, GB/s", 10)]))


def limit_row(name, value):
    return {"network": cost_report.LIMIT, "size": 0, "work": name, "precision": "", "ms": value}


def cost_row(network, size, ms, work=cost_networks.TRAINING, mib=10.0, gpu="H200"):
    return {
        "network": network, "size": str(size), "work": work, "precision": "bf16", "ms": str(ms), "mib": str(mib),
        "gflop": "2", "note": "", "gpu": gpu, "cpu": "EPYC", "threads": "2", "torch": "2.13",
    }  # fmt: skip


def test_a_table_is_written_with_page_and_picture_and_continued(tmp_path, capsys, tiny_networks):
    path, networks = tmp_path / "cost.csv", list(TINY)
    assert cost_by_size.run(path, CPU, networks, [8], ("float32",), seconds=0) == 9  # the deadline is over at once
    assert cost_by_size.run(path, CPU, networks, [8], ("float32",)) == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    capsys.readouterr()
    assert cost_by_size.run(path, CPU, networks, [8], ("float32",)) == 0
    assert rows == list(csv.DictReader(path.read_text().splitlines()))
    measured = [row for row in rows if row["network"] in ("pyramid-small", "resnet18")]
    assert len(measured) == 6
    assert all(float(row["ms"]) > 0 and float(row["gflop"]) > 0 and int(row["batch"]) >= 1 for row in measured)
    assert {row["note"] for row in rows if row["network"] == "absent"} == {
        "not measured: no_such_package is not installed"
    }
    assert "## Training, float32" in (tmp_path / "cost.md").read_text()
    assert (tmp_path / "cost.png").stat().st_size > 1000


def test_work_that_would_take_too_long_is_named_instead_of_measured(tiny_networks):
    job = cost_by_size.CostJob("resnet18", 128, cost_networks.TRAINING, "bf16")
    rows = [cost_row("resnet18", 64, ms=1000)]
    row = cost_by_size.measure_job(job, TINY["resnet18"], rows, CPU, step_seconds=3)
    assert row["ms"] == ""
    assert "3 s" in row["note"]
    rows = [cost_row("resnet18", 64, ms=1, mib=1e9)]
    assert "GiB" in cost_by_size.measure_job(job, TINY["resnet18"], rows, CPU, step_seconds=3)["note"]
    larger = cost_by_size.CostJob("resnet18", 256, cost_networks.TRAINING, "bf16")
    skipped = cost_row("resnet18", 128, ms="") | {"note": "not measured: 5 GiB per image expected"}
    assert cost_by_size.predicted(larger, [*rows, skipped]) == (float("inf"), float("inf"))
    assert cost_by_size.predicted(larger._replace(network="small CNN"), rows) is None


def test_a_measurement_that_fails_has_a_row_with_the_reason(tiny_networks):
    def fail(size):
        raise RuntimeError(f"no kernel for {size} pixels\nand so on")

    job = cost_by_size.CostJob("resnet18", 64, cost_networks.TRAINING, "float32")
    row = cost_by_size.measure_job(job, cost_networks.CostCandidate(fail), [], CPU, step_seconds=3)
    assert row["note"] == "not measured: no kernel for 64 pixels"
    larger = job._replace(size=128)
    assert cost_by_size.predicted(larger, [job._asdict() | row]) is None


def test_what_decides_is_measured_first_and_sizes_ascend():
    networks = list(cost_networks.candidates())
    jobs = cost_by_size.all_jobs(networks, [512, 28, 224, 64], ("tf32", "bf16"), torch.device("cuda"))
    assert {(job.network, job.size) for job in jobs[:12]} == {
        (network, size) for network in cost_by_size.FIRST_NETWORKS for size in cost_by_size.FIRST_SIZES
    }
    assert not any("onnxruntime" in job.network for job in jobs)  # computes on a CPU
    sizes = [job.size for job in jobs if job.network == "oriented" and job[2:] == (cost_networks.TRAINING, "bf16")]
    assert sizes == [28, 64, 224, 512]


def test_operations_of_a_convolution_are_counted():
    candidate = cost_networks.CostCandidate(lambda size: nn.Conv2d(1, 5, 3, padding=1, bias=False))
    flop = 2 * 5 * 9 * 128**2  # counted at 64 pixels
    assert cost_measurement.count_gflop(candidate, 128, False, CPU) == pytest.approx(flop / 1e9)
    # the image needs no gradient, so the backward pass is as large as the forward pass
    assert cost_measurement.count_gflop(candidate, 128, True, CPU) == pytest.approx(2 * flop / 1e9)


def test_the_ratios_that_decide_are_printed_for_each_precision():
    rows = [
        cost_row("pyramid-224", 64, 1.0),
        cost_row("pyramid-224", 512, 64 * 1.1),
        cost_row("pyramid-224", 224, 9, mib=120),
    ]
    table = cost_report.CostTable([*rows, cost_row("resnet18", 224, 6), limit_row("copy, GB/s", 2**20)])
    key = ("pyramid-224", 224, cost_networks.TRAINING, "bf16")
    assert table.copy_ms(*key) == pytest.approx(1e3 * 2 * 120 * 2**20 / (2**20 * 1e9))
    ratio, memory, growth = cost_report.aims(table)
    assert (ratio.value, memory.value) == (1.5, 120)
    assert growth.value == pytest.approx(0.1)
    assert ["reached" in str(aim) for aim in (ratio, memory, growth)] == [True, False, True]
    one_image = [cost_row(name, 224, ms, cost_networks.ONE_IMAGE, gpu="") for name, ms in
                 (("pyramid-small-224", 30), ("pyramid-224", 90), ("resnet18", 30))]  # fmt: skip
    assert [aim.value for aim in cost_report.aims(cost_report.CostTable(one_image))] == [1, 3]


def test_a_network_of_cheb_conv_layers_reads_a_batch_as_one_graph():
    pytest.importorskip("torch_geometric")
    torch.manual_seed(0)
    net, images = peers.ChebConvNetwork((3, 4), 3, 2, size=6), torch.rand(5, 1, 6, 6)
    torch.testing.assert_close(net(images)[:1], net(images[:1]))
