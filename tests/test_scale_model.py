"""The cost model has the limits that a cluster must have, and the page shows what the recorded constants give."""

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import scale_simulation
from benchmarks.scale_model import ClientCosts, Cluster, Provider, Workload, dollars, estimate, simulate, stage_rates

ROOT = Path(__file__).parents[1]
WORKLOAD = Workload("photographs", "net", 4e4, decode_seconds=5e-3, gpu_seconds=5e-4, cpu_seconds=0.5)
COSTS = ClientCosts(4e-3, 2e-9, 1.5e-3, share_of_limit=0.95)
READY = Provider(start_seconds=0.0, hours_between_failures=1e12)
IMAGES = 4096 * 2000


def run(gpus, provider=READY, workload=WORKLOAD, **options):
    return estimate(IMAGES, workload, COSTS, Cluster(gpus, provider, **options))


def test_twice_the_gpus_take_half_the_time_for_the_same_money_while_they_compute():
    one, two = run(8), run(16)
    assert (one.bottleneck, two.bottleneck) == ("compute", "compute")
    assert two.seconds == pytest.approx(one.seconds / 2)
    assert two.dollars == pytest.approx(one.dollars)


@pytest.mark.parametrize(
    ("provider", "options", "bottleneck"),
    [
        (replace(READY, store_bytes_per_second=1e8), {}, "storage"),
        (READY, {"is_sharded": False}, "requests"),
        (READY, {"part_size": 16}, "driver"),
    ],
)
def test_beyond_what_all_machines_share_more_gpus_only_cost_more(provider, options, bottleneck):
    some, more = run(1000, provider, **options), run(2000, provider, **options)
    assert some.bottleneck == more.bottleneck == bottleneck
    assert more.seconds == some.seconds
    assert more.dollars > 1.5 * some.dollars


def test_a_fast_network_waits_for_the_cores_that_decode():
    fast = replace(WORKLOAD, gpu_seconds=1e-6)
    result = run(1, workload=fast)
    assert result.bottleneck == "cores"
    assert result.images_per_second == pytest.approx(
        COSTS.share_of_limit * READY.cores_per_gpu / (5e-3 + 4e4 * 2e-9 + 4e4 / 2**23 * 4e-3)
    )
    twice = run(1, replace(READY, cores_per_gpu=2 * READY.cores_per_gpu), fast)
    assert twice.images_per_second == pytest.approx(2 * result.images_per_second)


def test_without_gpus_the_cores_decode_and_compute():
    rates = stage_rates(WORKLOAD, COSTS, Cluster(0, READY, cores=100))
    assert "compute" not in rates
    assert rates["cores"] == pytest.approx(0.95 * 100 / 0.505, rel=1e-3)


def test_the_price_of_requests_is_that_of_the_files():
    cluster = Cluster(1, READY, is_sharded=False)
    assert dollars(1e9, WORKLOAD, cluster, 0.0) == pytest.approx(400, rel=1e-3)


@pytest.mark.parametrize("gpus", [1, 40])
def test_without_variation_and_failures_the_simulation_is_the_formula(gpus):
    result = simulate(IMAGES, WORKLOAD, COSTS, Cluster(gpus, READY), variation=0.0)
    assert result.seconds == pytest.approx(run(gpus).seconds, rel=0.01)


def test_the_simulation_obeys_the_driver():
    cluster = Cluster(1000, READY, part_size=64)
    result = simulate(64 * 20_000, WORKLOAD, COSTS, cluster)
    assert result.bottleneck == "driver"
    assert result.seconds >= 20_000 * COSTS.driver_seconds_per_part


def test_failures_lose_parts_and_time_but_no_images():
    ready = simulate(IMAGES, WORKLOAD, COSTS, Cluster(10, READY))
    failing = replace(READY, hours_between_failures=0.01)
    assert simulate(IMAGES, WORKLOAD, COSTS, Cluster(10, failing)).seconds > 1.02 * ready.seconds


def test_the_page_shows_what_the_recorded_constants_give(tmp_path):
    measured = scale_simulation.read_measurements(ROOT / "results")
    page = (ROOT / "docs" / "scale.md").read_text()
    rows = scale_simulation._rows(ROOT / "results" / "scale-simulation.csv")
    parts = {
        "constants": scale_simulation.constants_table(measured),
        "check": scale_simulation.check_text(measured),
        "results": scale_simulation.result_table(rows),
    }
    assert scale_simulation.fill_page(page, parts) == page
    for row in rows:
        assert row["bottleneck"] in scale_simulation.STAGES


def test_the_recorded_simulation_is_that_of_the_recorded_constants():
    measured = scale_simulation.read_measurements(ROOT / "results")
    recorded = scale_simulation._rows(ROOT / "results" / "scale-simulation.csv")
    (row,) = [
        row for row in recorded if (row["images"], row["stored_as"], row["gpus"]) == ("photographs", "files", "1000")
    ]
    cluster = Cluster(1000, is_sharded=False)
    result = simulate(1e9, measured.workloads["photographs"], measured.costs, cluster)
    assert float(row["hours"]) == pytest.approx(result.seconds / 3600, rel=1e-3)


def test_the_model_agrees_with_this_machine():
    """The one-machine point: within a fifth of a measurement that sets none of its constants."""
    assert scale_simulation.one_machine(scale_simulation.read_measurements(ROOT / "results"))["ratio"] == pytest.approx(
        1, abs=0.2
    )


def test_a_page_without_markers_is_refused():
    with pytest.raises(ValueError, match="end results"):
        scale_simulation.fill_page("# Scale", {"results": "table"})
