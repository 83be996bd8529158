"""The yardsticks of bulk predictions: steady rates, memory over time, loops and limits."""

import csv

import pytest
import torch
from benchmarks import engine_kills, throughput
from benchmarks.bulk_images import create_images
from benchmarks.core_limit import CoreLimit
from benchmarks.loader_loop import RowImages, loader_rate
from torch import nn
from torch.utils.data import DataLoader


def test_the_steady_rate_leaves_out_the_begin_and_the_end():
    """Two workers, each with a part of 10 images per second; the first starts 5 s late and the last part takes long."""
    first = [5.0, 6.0, 7.0, 8.0, 9.0]
    second = [5.5, 6.5, 7.5, 8.5, 19.5]
    assert throughput.steady_rate([*first, *second], 2, 10) == pytest.approx(20)


def test_too_few_parts_have_no_steady_rate():
    with pytest.raises(ValueError, match="4 parts"):
        throughput.steady_rate([1.0, 2.0], 2, 10)


def test_the_limit_is_the_sum_of_the_rates_and_the_mean_of_the_times():
    class Connection:
        def __init__(self, answer):
            self.answer = answer

        def send(self, order):
            assert order == (64, 1.0)

        def recv(self):
            return self.answer

    limit = CoreLimit([Connection((100, 1.0, 0.2, 0.7)), Connection((300, 1.5, 0.4, 0.9))])
    assert limit.measure(64, 1.0) == pytest.approx((100 + 200, 0.6 / 400, 1.6 / 400))


def test_the_loop_reads_each_image_once_with_any_number_of_workers(tmp_path):
    source = create_images(tmp_path / "images", 40, side=4)
    assert len(list(RowImages(source))) == 40
    assert next(iter(DataLoader(RowImages(source), 8))).shape == (8, 1, 4, 4)
    assert loader_rate(nn.Flatten(), source, 0, 8) > 0
    assert torch.stack(list(RowImages(source))).unique(dim=0).shape[0] == 40


def test_the_page_names_the_share_of_the_limit(tmp_path):
    rows = [
        throughput._row(throughput.LOADER, 2, 64, "ResNet-18", 100.0),
        throughput._row(throughput.LIMIT, 2, 64, "net", 1000.0, 1e-4, 9e-4),
        throughput._row(throughput.LOCAL, 2, 64, "net", 950.0) | {"share_of_limit": 0.95},
    ]
    path = tmp_path / "scale.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    throughput.write_page(list(csv.DictReader(path.read_text().splitlines())), tmp_path / "scale.md")
    page = (tmp_path / "scale.md").read_text()
    assert "| local | 2 | 64 | net | 950 | 95% | 9.5 |" in page
    assert "95% (reached: 90%)" in page


def test_memory_is_compared_after_everything_is_loaded():
    def sample(number):
        return {"driver_mib": 100.0 + number, "ray_mib": 50.0, "worker_mib": "7:300.0" if number > 3 else ""}

    growth = engine_kills.memory_growth({"samples": [sample(number) for number in range(12)]})
    assert growth["driver"] == {"first_mib": 104.0, "last_mib": 110.0, "max_mib": 111.0, "samples": 12}
    assert growth["rest of Ray"]["first_mib"] == growth["rest of Ray"]["last_mib"] == 50.0
    assert growth["worker 7"]["samples"] == 8
