import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tigranet.data.decode_budget import ByteBudget


def test_reservations_never_exceed_the_limit_and_all_are_granted():
    budget, lock, rng = ByteBudget(100), threading.Lock(), random.Random(0)
    total = largest = 0

    def use(num_bytes):
        nonlocal total, largest
        with budget.reserve(num_bytes):
            with lock:
                total += num_bytes
                largest = max(largest, total)
            time.sleep(rng.random() / 1000)
            with lock:
                total -= num_bytes
        return num_bytes

    requests = [rng.choice([0, 1, 10, 60, 100]) for _ in range(300)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, requests, timeout=30)) == requests
    assert 60 < largest <= 100
    assert total == 0


def test_a_large_request_is_served_before_later_small_ones():
    budget, order = ByteBudget(10), []

    def use(num_bytes):
        with budget.reserve(num_bytes):
            order.append(num_bytes)

    with budget.reserve(6):
        threads = []
        for num_bytes in (9, 1, 2):
            threads.append(threading.Thread(target=use, args=(num_bytes,)))
            threads[-1].start()
            while len(budget._queue) < len(threads):
                time.sleep(0.001)
        assert order == []  # the small ones would fit, but wait behind the large one
    for thread in threads:
        thread.join(10)
    assert order[0] == 9


def test_more_than_the_limit_is_refused_at_once():
    with pytest.raises(ValueError, match=r"11 of 10"), ByteBudget(10).reserve(11):
        pass


def test_an_exception_returns_the_bytes():
    budget = ByteBudget(10)
    for _ in range(2):
        with pytest.raises(KeyError), budget.reserve(10):
            raise KeyError
