"""CPU kernel of the dynamic pooling: the J-th largest value of a map by bisection instead of sorting."""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.compile import compile_exact, kernel


@compile_exact
@no_type_check
def sort_keys(bits, omega, masked, keys):
    """Store integers in the order of the values in ``keys``, and return the bits of the largest magnitude.

    A NaN comes above all values, and nodes outside omega below all. The magnitude is a NaN if a value is NaN, or is
    infinite outside omega, where the plain version multiplies it by zero.
    """
    sign = 8 * bits.itemsize - 1
    zero = bits.dtype.type(0)
    without_sign = bits.dtype.type((1 << sign) - 1)
    lowest = ~without_sign
    infinity = bits.dtype.type(0x7F800000 if sign == 31 else 0x7FF0000000000000)
    largest = bits.dtype.type(0)
    for i in range(len(bits)):
        magnitude = bits[i] & without_sign
        key = bits[i] ^ ((bits[i] >> sign) & without_sign)
        key = without_sign if magnitude > infinity else key
        if masked:
            inside = omega[i] != 0
            key = key if inside else lowest
            magnitude = magnitude if inside else (without_sign if magnitude >= infinity else zero)
        keys[i] = key
        largest = max(largest, magnitude)
    return largest


@compile_exact
@no_type_check
def _count_at_least(keys, threshold):
    count = keys.dtype.type(0)
    for i in range(len(keys)):
        count += keys.dtype.type(keys[i] >= threshold)
    return count


@compile_exact
@no_type_check
def _count_above(keys, threshold):
    count = 0
    for i in range(len(keys)):
        count += keys[i] > threshold
    return count


@compile_exact
@no_type_check
def _extremes(keys):
    lowest, highest = keys[0], keys[0]
    for i in range(len(keys)):
        lowest = min(lowest, keys[i])
        highest = max(highest, keys[i])
    return lowest, highest


@compile_exact
@no_type_check
def _lowest_at_least(keys, threshold, highest):
    """Return the lowest key that is not below the threshold; ``highest`` is the highest key."""
    lowest = highest
    for i in range(len(keys)):
        key = keys[i] if keys[i] >= threshold else highest
        lowest = min(lowest, key)
    return lowest


@compile_exact
@no_type_check
def jth_largest(keys, j):
    """Return the j-th largest key, by bisection."""
    low, high = _extremes(keys)
    if _count_at_least(keys, high) >= j:
        return high
    highest = high
    while True:  # at least j keys are not below low, fewer than j are not below high
        middle = (low & high) + ((low ^ high) >> 1)
        if middle == low:
            return low
        count = _count_at_least(keys, middle)
        if count == j:
            return _lowest_at_least(keys, middle, highest)
        if count > j:
            low = middle
        else:
            high = middle


@kernel
@no_type_check
def pooling(z, omega, masked, maps, num_active, strict, tolerance, bits, first, last, active):
    """Mark the ``num_active`` largest values in omega of the maps ``first`` to ``last``.

    ``z`` and ``active`` are (batch * maps, nodes), ``omega`` is (batch, nodes), ``bits`` is ``z`` as integers.
    """
    nodes = z.shape[1]
    keys = np.empty(nodes, bits.dtype)
    value = np.empty(1, z.dtype)
    value_bits = value.view(bits.dtype)
    sign = 8 * bits.itemsize - 1
    without_sign = bits.dtype.type((1 << sign) - 1)
    j = min(num_active, nodes)
    for item in range(first, last):
        inside = omega[(item // maps) % len(omega)]
        value_bits[0] = sort_keys(bits[item], inside, masked, keys)
        magnitude = value[0]
        key = jth_largest(keys, j)
        if strict:
            remaining = j - _count_above(keys, key)
            for i in range(nodes):
                tied = keys[i] == key and remaining > 0
                remaining -= tied
                active[item, i] = (keys[i] > key or tied) and (not masked or inside[i] != 0)
        else:
            value_bits[0] = key ^ ((key >> sign) & without_sign)
            jth = value[0] if key != ~without_sign else -z.dtype.type(np.inf)
            threshold = jth - tolerance * magnitude
            _mark(z[item], threshold, inside, masked, active[item])


@compile_exact
@no_type_check
def _mark(z, threshold, inside, masked, active):
    if masked:
        for i in range(len(z)):
            active[i] = np.uint8(z[i] >= threshold) & inside[i]
    else:
        for i in range(len(z)):
            active[i] = np.uint8(z[i] >= threshold)
