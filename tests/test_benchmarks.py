"""The benchmarks compare implementations of the same function, and save their results."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import __main__ as all_benchmarks
from benchmarks import (
    busy_neighbour,
    compare_versions,
    convolution,
    exported,
    languages,
    network,
    open_sets,
    peers,
    pooling,
    pyramid_kernels,
    quantised,
    resumed_table,
    statistics,
    suggest,
    suggest_summary,
    timing,
    unknown,
    user_process,
)
from sklearn.metrics import roc_auc_score

from tigranet import GridLaplacian, Statistics, TIGraNet
from tigranet.layers import OrientationNorm


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch):
    monkeypatch.setattr(timing, "DEVICE", torch.device("cpu"))


def test_the_peers_compute_the_same_statistics():
    pytest.importorskip("torch_geometric")
    cpu, z = torch.device("cpu"), torch.randn(2, 3, 36)
    active = torch.rand_like(z) < 0.5
    expected = Statistics(4)(z, GridLaplacian(6, 6), active).reshape(2, 3, 10)
    nodes_middle = z.transpose(1, 2), active.transpose(1, 2)
    nodes_first = z.permute(2, 0, 1).flatten(1), active.permute(2, 0, 1).flatten(1)
    one_graph = tuple(tensor.flatten(0, 1) for tensor in nodes_middle)
    results = {
        "ChebConv": peers.statistics_by(peers.cheb_conv(6, cpu), *nodes_middle, 4, 1),
        "as called": peers.cheb_conv_as_called(6, 2, cpu)(*one_graph, 4),
        "CSR": peers.statistics_by(peers.csr(6, cpu), *nodes_first, 4, 0).reshape(2, 3, 10),
        "dense": peers.statistics_by(peers.dense(6, cpu), z, active, 4, 2),
    }
    for name, result in results.items():
        torch.testing.assert_close(result.reshape(2, 3, 10), expected, rtol=1e-4, atol=1e-5, msg=name)


def test_the_fused_and_the_plain_statistics_are_compared_without_other_libraries(monkeypatch, capsys):
    monkeypatch.setattr(statistics, "BATCHES", {8: 2})
    statistics.print_plain_times()
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(work, size) for work, size, _ in rows] == [("statistics", 8), ("statistics, with backward", 8)]
    assert all(ratio > 0 for *_, ratio in rows)


def test_propagation_equals_the_laplacian_of_the_grid():
    pytest.importorskip("torch_geometric")
    y = torch.randn(2, 3, 36)
    result = peers.ChebConvLaplacian(6, torch.device("cpu"))(y)
    torch.testing.assert_close(result, GridLaplacian(6, 6)(y))


def test_exported_networks_are_timed_beside_the_fused_kernels():
    rows = list(exported.time_exported("SC[2,2]-S[2]", 8, batch=2))
    assert [row.candidate for row in rows] == ["fused", "plain", "onnxruntime"] * 2
    assert all(row.times_fused > 0 for row in rows)


def test_all_benchmarks_on_a_cpu_have_the_rows_of_exported_oriented_networks(monkeypatch):
    for module in (statistics, network, convolution, pooling):
        monkeypatch.setattr(module, "measure", lambda *_: iter(()))
    monkeypatch.setattr(statistics, "growth", lambda: iter(()))
    monkeypatch.setattr(all_benchmarks, "DEVICE", torch.device("cpu"))

    def time_exported(preset, size, batch):
        yield timing.Row(f"{preset} exported, {batch} images", size, "onnxruntime", 1.0, 1.0, 1.0)

    monkeypatch.setattr(exported, "time_exported", time_exported)
    rows = [(row.work, row.size) for row in all_benchmarks._all_rows({}, compiled=False)]
    assert {("oriented exported, 16 images", size) for size in (28, 64)} <= set(rows)


def test_quantised_versions_are_written_and_run(tmp_path):
    net = TIGraNet("SC[4,2]-S[2]-FC[20]", 3)
    net.train()(torch.rand(4, 1, 12, 12))
    files = quantised.write_versions(net.eval(), tmp_path)
    images = torch.rand(5, 1, 12, 12).numpy()
    probabilities = {name: quantised.predict(file, images)[0] for name, file in files.items()}
    assert list(files) == ["float32", "float16", "int8, fc", "int8, fc and conv"]
    np.testing.assert_allclose(probabilities["float16"], probabilities["float32"], atol=0.02)
    np.testing.assert_allclose(probabilities["int8, fc"], probabilities["float32"], atol=0.1)
    assert not np.array_equal(probabilities["int8, fc"], probabilities["float32"])


@pytest.mark.parametrize("unrolled", [False, True])
def test_the_source_for_numba_computes_the_statistics(unrolled):
    """The source runs as Python here. The lanes of a warp are the entries of an array."""
    size, order = languages.SIZE, languages.ORDER
    z, active, grid = torch.randn(1, 1, size**2), torch.rand(1, 1, size**2) < 0.5, GridLaplacian(size, size)
    source = languages._numba_source(unrolled).replace("lane if inside else 0", "where(inside, lane, 0)")
    source = source.replace("float32(1) if inside else float32(0)", "where(inside, float32(1), float32(0))")
    source = (
        source.replace("if lane == 0:", "if True:")
        .replace("= mean", "= mean[0]")
        .replace("= squares *", "= squares[0] *")
    )
    namespace = {"cuda": CudaEmulation, "float32": np.float32, "ALL": None, "where": np.where}
    exec(source, namespace)
    phi = np.zeros((1, 2 * (order + 1)), np.float32)
    signals = z[0].numpy(), active[0].numpy()
    namespace["statistics"](*signals, grid.inverse_sqrt_degree.float().flatten().numpy(), phi, 1)
    torch.testing.assert_close(torch.from_numpy(phi), Statistics(order)(z, grid, active), rtol=1e-4, atol=1e-6)


class CudaEmulation:
    """The functions of ``numba.cuda`` that the kernel uses, for the 32 lanes of one warp."""

    class Index:
        def __init__(self, x, y):
            self.x, self.y = x, y

    threadIdx, blockIdx, blockDim = Index(np.arange(32), 0), Index(0, 0), Index(32, 1)

    class local:
        @staticmethod
        def array(count, dtype):
            return np.zeros((count, 32), dtype)

    @staticmethod
    def shfl_sync(mask, value, lane):
        return np.broadcast_to(value, 32)[lane]

    @staticmethod
    def shfl_xor_sync(mask, value, lane_mask):
        return np.broadcast_to(value, 32)[np.arange(32) ^ lane_mask]


def test_candidates_alternate_and_are_compared_with_the_fused_one(capsys):
    calls = []
    candidates = {name: lambda name=name: calls.append(name) for name in ("fused", "plain")}
    rows = timing.compare("work", 3, candidates, {"plain": 2.0}, rounds=2)
    assert calls == ["fused", "plain"] * 3
    assert [row.candidate for row in rows] == ["fused", "plain"]
    assert rows[0].times_fused == 1
    assert rows[1].saved_mb == 2
    assert "work" in capsys.readouterr().out


def test_a_row_is_saved_before_the_next_one_is_measured(tmp_path):
    def rows():
        yield timing.Row("work", 26, "fused", 0.5, 0.25, 1.0)
        with (tmp_path / "some-cpu.csv").open() as file:
            (written,) = csv.DictReader(file)
        assert written["median_ms"] == "0.5"
        assert written["eager_ms"] == ""
        yield timing.Row("work", 26, "peer", None, None, None, eager_ms=2.0, eager_times_fused=4.0)

    assert len(timing.write("some", rows(), tmp_path)) == 2
    with (tmp_path / "some-cpu.csv").open() as file:
        assert [row["eager_times_fused"] for row in csv.DictReader(file)] == ["", "4"]


def test_a_checkout_is_compared_with_itself(capsys):
    """The worker processes answer for both checkouts, and the ratio belongs to the two medians."""
    checkout = Path(__file__).parent.parent
    (row,) = compare_versions.compare(checkout, "cpu", rounds=1, only="pooling, 26x26")
    assert row["ratio"] == row["this_ms"] / row["other_ms"]
    assert 0.05 < row["ratio"] < 20  # both time the same work
    assert "pooling, 26x26" in capsys.readouterr().out


def test_a_training_is_measured_without_settings_of_the_user(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    worker = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ.get('OMP_WAIT_POLICY')]))"
    monkeypatch.setattr(busy_neighbour, "WORKER", worker)
    with busy_neighbour.busy_neighbour():
        assert busy_neighbour.train(user_process.HERE, "torch", ["paper", "28"]) == [["torch", "paper", "28"], None]


def test_the_median_time_beside_a_busy_process_is_divided_by_that_alone(monkeypatch):
    times = iter([10.0, 20.0, 15.0, 50.0] * 3)  # alone, with each import first, then beside the busy process

    def train(*arguments):
        return {"ms": next(times), "processor_ms": 30.0, "faults": 3.0, "peak_mib": 900.0}

    monkeypatch.setattr(busy_neighbour, "train", train)
    rows = busy_neighbour.measure(None, [], rounds=3)
    assert [row["ratio"] for row in rows] == [1.5, 2.5]


def test_a_worker_that_cannot_start_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="exit code 1"):
        compare_versions.Version(tmp_path, "no-such-device")


def test_the_operations_of_the_pyramids_are_timed_with_the_shapes_of_the_networks(monkeypatch, capsys):
    monkeypatch.setattr(pyramid_kernels, "DEVICE", torch.device("cpu"))
    pyramid_kernels.main()
    assert "needs an NVIDIA GPU" in capsys.readouterr().out
    shapes = set()

    def record(norm, args):
        y, *rest = args
        shapes.add((norm.num_statistics, int(y.shape[2] ** 0.5), rest[1] if rest else 0))

    with torch.no_grad():
        for (preset, size, _), timed in pyramid_kernels.NETWORKS.items():
            if size == 32:
                net, shapes = TIGraNet(preset, 2).eval(), set()
                for norm in net.modules():
                    if isinstance(norm, OrientationNorm):
                        norm.register_forward_pre_hook(record)
                net(torch.rand(1, 1, size, size))
                assert set(timed) <= shapes
    for case in pyramid_kernels.cases(3, 6, 1, 2, torch.float32):
        assert case.function(*case.inputs).shape[:2] == (2, 24)
        assert min(case.forward_bytes, case.backward_bytes) > case.inputs[0].nbytes


def test_a_table_is_continued_with_the_rows_that_it_lacks(tmp_path, capsys):
    measured = []

    def run(name, number):
        measured.append((name, number))
        return {"square": number**2}

    path = tmp_path / "table.csv"
    resumed_table.measure_rows(path, ("name", "number"), [("a,b", 1), ("c", 2)], run)
    resumed_table.measure_rows(path, ("name", "number"), [("a,b", 1), ("c", 3)], run)
    assert measured == [("a,b", 1), ("c", 2), ("c", 3)]
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(row["name"], row["square"]) for row in rows] == [("a,b", "1"), ("c", "4"), ("c", "9")]
    assert rows[0]["torch"] == torch.__version__
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_jobs_of_a_table_may_run_in_several_processes(tmp_path, capsys):
    path, jobs = tmp_path / "table.csv", [((("square", number**2),),) for number in range(3)]
    resumed_table.measure_rows(path, ("job",), jobs, dict, workers=2)
    squares = {row["job"]: row["square"] for row in csv.DictReader(path.read_text().splitlines())}
    assert squares == {str(job): str(number**2) for number, (job,) in enumerate(jobs)}
    capsys.readouterr()


def test_the_area_under_the_curve_is_that_of_scikit_learn():
    known, others = torch.randint(0, 9, (2, 50)).double()
    expected = roc_auc_score([0] * 50 + [1] * 50, torch.cat([known, others]))
    assert unknown.area_under_curve(known, others) == pytest.approx(expected)


def test_every_method_is_compared_with_images_of_no_class(tmp_path):
    """A network with random weights stands in for a trained one."""
    net = TIGraNet("SC[2,2]-S[2]-FC[5]", 3, image_size=8).eval()
    images = {"train": 30, "validation": 20, "test": 40, "A": 9, "B": 9, "C": 0, "distant C": 0}
    parts = {name: torch.rand(count, 1, 8, 8) * 0.2 for name, count in images.items()}
    parts |= open_sets.noise_and_blanks((1, 8, 8), seed=0)
    parts |= {"steel": torch.rand(5, 1, 8, 8), "digits": torch.rand(5, 1, 8, 8)}
    measurements = {name: unknown.measure_images(net, part) for name, part in parts.items() if len(part)}
    measurements |= {f"{name} labels": torch.arange(images[name]) % 3 for name in ("train", "validation", "test")}
    rows = [{"data": "plankton", "network": "n", "method": method} for method in unknown.METHODS]
    rows = [row | unknown.compare(net, measurements, str(row["method"])) for row in rows]
    assert all(0 <= row["unseen A"] <= 100 and row["unseen C"] is None for row in rows)
    assert rows[-1]["blank"] == 100
    with open(tmp_path / "a.csv", "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    unknown.write_means(tmp_path / "a.csv")
    assert (tmp_path / "a.md").read_text().count("| plankton | n |") == len(unknown.METHODS)


def test_the_images_of_every_strategy_are_different_ones_and_teach(monkeypatch):
    monkeypatch.setattr(suggest, "LABELLED", range(40, 81, 20))
    labels = torch.arange(150) % 3
    features = torch.randn(150, 5) + 3 * torch.nn.functional.one_hot(labels, 5)
    pool = suggest.Pool(features[:120], labels[:120], features[120:], labels[120:])
    for name, choose in suggest.STRATEGIES.items():
        curve = suggest.learning_curve(pool, choose, seed=1)
        assert list(curve) == ["40", "60", "80"], name
        assert curve["80"] > 80, name


def test_wrong_labels_are_planted_as_told(mnist_012):
    images, is_wrong = suggest.wrong_labels(mnist_012, 0.1, seed=0)
    repeated, _ = suggest.wrong_labels(mnist_012, 0.1, seed=0)
    assert torch.equal(images.labels, repeated.labels)
    assert int(is_wrong.sum()) == 50
    order = torch.randperm(500, generator=torch.Generator().manual_seed(0))
    assert torch.equal(images.labels != mnist_012.train.labels[order], is_wrong)


def test_the_summary_of_the_suggestions_has_the_means_over_seeds(tmp_path):
    rows = [{"draw": 1, "strategy": "random", "seed": seed, "40": 60 + seed, "60": 90 + seed} for seed in (0, 2)]
    with (tmp_path / "s.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    suggest_summary.write_summary(tmp_path / "s.csv", tmp_path / "s-labels.csv")
    page = (tmp_path / "s.md").read_text()
    assert "| 1 | random | 2 | 61.0 | 60 | 60 | 60 | 76.0 ± 1.4 |" in page
    assert {path.name for path in tmp_path.iterdir()} == {"s.csv", "s.md", "s.png", "s.svg"}
    assert suggest_summary.images_needed([(40, 91), (60, 89), (80, 90)], 90) == 80
    assert suggest_summary.images_needed([(40, 80.0)], 90) is None
