"""A thread whose processor time falls behind the time that passes has to share its core."""

import threading

import pytest
import torch

from tigranet.ops.cpu import thread_pool
from tigranet.ops.cpu.contention import MAX_PAUSE_SECONDS, MIN_SHARE, PAUSE_SECONDS, WINDOW_SECONDS, Contention
from tigranet.ops.cpu.thread_pool import MAX_SINGLE_THREAD_WORK, share


class Clocks:
    """Two clocks that a test sets."""

    def __init__(self):
        self.time = self.processor_time = 100.0
        self.contention = Contention(lambda: self.time, lambda: self.processor_time)

    def work(self, seconds, processor_share):
        """Let a thread work for some seconds, in which it computes for some of the time."""

        def pass_time():
            self.time += seconds
            self.processor_time += seconds * processor_share

        self.contention.observe(pass_time)


@pytest.mark.parametrize(("processor_share", "expected"), [(1.0, False), (MIN_SHARE, False), (0.6, True), (0.0, True)])
def test_it_is_likely_if_the_thread_computes_less_than_the_time_that_passes(processor_share, expected):
    clocks = Clocks()
    assert not clocks.contention.is_likely()
    clocks.work(2 * WINDOW_SECONDS, processor_share)
    assert clocks.contention.is_likely() is expected


def test_a_short_interruption_is_no_contention():
    clocks = Clocks()
    clocks.work(0.2 * WINDOW_SECONDS, 0.0)
    assert not clocks.contention.is_likely()
    clocks.work(2 * WINDOW_SECONDS, 1.0)
    assert not clocks.contention.is_likely()


def test_short_pieces_of_work_are_added():
    clocks = Clocks()
    for _ in range(30):
        clocks.work(0.05 * WINDOW_SECONDS, 0.5)
    assert clocks.contention.is_likely()


def test_it_is_forgotten_and_observed_again():
    clocks = Clocks()
    clocks.work(2 * WINDOW_SECONDS, 0.5)
    clocks.time += 0.9 * PAUSE_SECONDS
    assert clocks.contention.is_likely()
    clocks.time += 0.2 * PAUSE_SECONDS
    assert not clocks.contention.is_likely()
    clocks.work(2 * WINDOW_SECONDS, 1.0)
    assert not clocks.contention.is_likely()
    clocks.work(2 * WINDOW_SECONDS, 0.5)
    assert clocks.contention.is_likely()


def test_the_pauses_double_while_the_other_work_goes_on():
    clocks, pauses = Clocks(), []
    for processor_share in (*[0.5] * 6, 1.0, 0.5):
        clocks.work(2 * WINDOW_SECONDS, processor_share)
        start = clocks.time
        while clocks.contention.is_likely():
            clocks.time += PAUSE_SECONDS / 100
        pauses.append(clocks.time - start)
    longer = [min(2**k * PAUSE_SECONDS, MAX_PAUSE_SECONDS) for k in range(6)]
    assert pauses == pytest.approx([*longer, 0.0, PAUSE_SECONDS], abs=PAUSE_SECONDS / 50)


def test_work_that_fails_is_not_counted():
    clocks = Clocks()
    with pytest.raises(ZeroDivisionError):
        clocks.contention.observe(lambda: 1 / 0)
    assert not clocks.contention.is_likely()


@pytest.mark.parametrize(("threads", "used"), [(1, 1), (2, 1), (3, 2)])
def test_one_thread_fewer_computes_and_nothing_is_left_out(threads, used, monkeypatch):
    class Crowded(Contention):
        def is_likely(self):
            return True

    monkeypatch.setattr(thread_pool, "_contention", Crowded())
    computed, idents, barrier = [], set(), threading.Barrier(used, timeout=20)

    def kernel(first, last):
        if threading.get_ident() not in idents:
            idents.add(threading.get_ident())
            barrier.wait()
        computed.extend(range(first, last))

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        share(kernel, 30, MAX_SINGLE_THREAD_WORK + 1)
    finally:
        torch.set_num_threads(before)
    assert sorted(computed) == list(range(30))
    assert len(idents) == used
