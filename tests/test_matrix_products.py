"""The benchmark of matrix products counts the operations of each product once, and repeats products as they were."""

import os
import time

import pytest
import torch
import torch.nn.functional as F
from benchmarks import matrix_products, step_products, step_worker, user_process
from benchmarks.matrix_products import Usage, aims, fault_columns, page
from benchmarks.step_products import (
    Product,
    own_kernels_as_operators,
    profiled_products,
    seconds_alone,
    trace_products,
)
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

from tigranet import TIGraNet
from tigranet.ops import map_products, using

A, B = torch.rand(3, 4), torch.rand(4, 5)
CALLS = {
    "mm": lambda: torch.mm(A, B),
    "addmm": lambda: F.linear(A, B.T, torch.rand(5)),
    "bmm": lambda: torch.bmm(A.expand(2, -1, -1), torch.rand(2, 5, 4).transpose(1, 2)),
    "bmm with out": lambda: torch.bmm(A.expand(2, -1, -1), B.expand(2, -1, -1), out=torch.empty(2, 3, 5)),
    "baddbmm": lambda: torch.baddbmm(torch.rand(2, 3, 5), A.expand(2, -1, -1), B.expand(2, -1, -1)),
}


def profiled(call, without=None):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        call()
    return profiled_products(profiler.events(), without)


def traced(call, without=None):
    with trace_products(without) as products:
        call()
    return products


@pytest.mark.parametrize("name", CALLS)
def test_a_product_has_the_operations_that_pytorch_counts(name):
    with FlopCounterMode(display=False) as counter:
        CALLS[name]()
    ((product, seconds),) = profiled(CALLS[name])
    (repeated,) = traced(CALLS[name])
    assert product.flop == repeated.flop == counter.get_total_flops()
    assert repeated._replace(strides=()) == product
    assert seconds > 0


@pytest.mark.parametrize("name", CALLS)
def test_a_product_is_repeated_with_the_same_strides(name):
    (product,) = traced(CALLS[name])
    assert traced(product.build()) == [product]
    assert product.num_bytes >= 4 * (A.numel() + B.numel())


@pytest.mark.parametrize(("widths", "own_products"), [((4, 2, 6), False), ((9, 8, 10), False), ((9, 8, 10), True)])
def test_a_training_step_has_as_many_operations_with_fused_kernels(widths, own_products, monkeypatch):
    monkeypatch.setattr(map_products, "_mkl_has_half_speed", lambda: own_products)
    net = TIGraNet("MC[{},2]-R[{}]-D-MC[{},2]-S[2]-FC[4]".format(*widths), 3)
    images, labels = torch.rand(2, 1, 8, 8), torch.arange(2)

    def step():
        F.cross_entropy(net(images), labels).backward()

    with using("plain"), FlopCounterMode(display=False) as counter:
        step()
    with own_kernels_as_operators():
        in_profile, in_trace = [product for product, _ in profiled(step)], traced(step)
    assert sum(product.flop for product in in_profile) == counter.get_total_flops()
    assert sum(product.flop for product in in_trace) == counter.get_total_flops()
    assert any("aten" not in product.operator for product in in_trace) is own_products
    for product in set(in_trace):
        product.build()()


def test_the_products_of_a_block_are_left_out():
    def call():
        with record_function("block"):
            torch.mm(A, B)
        torch.mm(A, A.T)

    assert [product.flop for product, _ in profiled(call, "block")] == [2 * 3 * 4 * 3]
    assert [product.flop for product in traced(call, "block")] == [2 * 3 * 4 * 3]
    assert len(profiled(call)) == len(traced(call)) == 2


def test_products_that_are_not_counted_are_an_error():
    with pytest.raises(ValueError, match="aten::convolution"):
        profiled(lambda: F.conv2d(torch.rand(1, 1, 4, 4), torch.rand(1, 1, 3, 3)))


def test_equal_products_are_timed_once(monkeypatch):
    monkeypatch.setattr(step_products, "ALONE_SECONDS", 0.0)
    small, large = (Product("aten::mm", ((n, n), (n, n)), ((n, 1), (n, 1))) for n in (2, 300))
    seconds = seconds_alone([small, large, small])
    assert list(seconds) == [small, large]
    assert 0 < seconds[small] < seconds[large]


def test_a_measurement_is_continued_once_per_step(monkeypatch):
    monkeypatch.setattr(step_worker, "IMAGES", 60)
    begun = []

    def measurement(steps):
        for step in range(steps):
            begun.append(step)
            yield

    step_worker.train("SC[2,2]-S[2]", 8, measurement(3))
    assert begun == [0, 1, 2]


def test_each_kind_of_product_is_listed_with_its_speed():
    plain, transposed = (
        Product("aten::mm", ((10, 10), (10, 10)), strides) for strides in (((10, 1),) * 2, ((1, 10),) * 2)
    )
    key = plain._replace(strides=())
    (line,) = step_worker.list_products(
        [[(key, 1e-6), (key, 1e-6)]], [plain, transposed], {plain: 1e-6, transposed: 3e-6}, 8.0
    )
    assert "2 mm" in line
    assert "2.0 in the step" in line
    assert "1.0 alone" in line


def test_the_factor_is_that_of_the_medians_after_the_first_epoch():
    columns = fault_columns({"kept": [(50.0, 2.0), (60.0, 1.0), (70.0, 3.0)], "returned": [(90.0, 40.0)] * 3})
    assert columns["faults_factor"] == 20
    assert columns["kept_faults_first_epoch"] == 60
    assert fault_columns({"kept": [(1.0, 0.0)], "returned": [(1.0, 1.0)]})["faults_factor"] == step_worker.IMAGES


def test_the_page_says_which_network_is_the_worst():
    row = {
        "preset": "a", "size": "8", "peak_gflop_per_s": "100", "in_step_share_of_peak": "0.7",
        "alone_share_of_peak": "0.8", "with_augmentation_share_of_peak": "0.65", "share_of_step": "0.5",
        "kept_faults": "1", "returned_faults": "30", "faults_factor": "30", "other_cores": "0.0", "threads": "2",
        "cpu": "some CPU", "torch": "2",
    }  # fmt: skip
    rows = [row, row | {"preset": "b", "in_step_share_of_peak": "0.5"}]
    share, factor = aims(rows)
    assert "1 of 2" in share
    assert "0.5 (b at 8 pixels)" in share
    assert "2 of 2" in factor
    assert "| a | 8 | 100 | 70 % | 80 % | 65 % | 50 % | 1, 30 | 30 | 0.0 |" in page(rows)


def test_own_work_is_not_that_of_other_processes():
    assert Usage(0.0, 10.0, 1.0).other_cores(Usage(2.0, 14.0, 2.0)) == 1.5
    before = Usage.now()
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass
    after = Usage.now()
    assert 0 < after.own - before.own < after.clock - before.clock + 0.1
    assert before.other_cores(after) <= (os.cpu_count() or 1) + 1


def test_the_networks_are_the_defaults_on_a_cpu_and_the_oriented_ones():
    assert ("pyramid-small-224", 224) in matrix_products.NETWORKS
    assert ("oriented", 64) in matrix_products.NETWORKS


def test_a_process_fails_with_what_it_says(capfd):
    with pytest.raises(user_process.subprocess.CalledProcessError):
        user_process.run_without_settings(["-c", "raise SystemExit('the reason')"])
    assert "the reason" in capfd.readouterr().err
