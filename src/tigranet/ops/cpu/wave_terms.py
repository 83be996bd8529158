"""The terms of group convolutions at a vector of pixels, in registers: straight code that is made from the tables.

A filter of the basis is symmetric under quarter turns, up to a sign or an exchange of cosine and sine. So the pixels of
a filter are taken in orbits of four: a pixel, then the same one turned by 90, 180 and 270 degrees. Waves of the
frequencies 0, 4, ... read the sum of an orbit; those of the frequencies 2, 6, ... the sum of the first and third pixel
minus that of the two others; and those of odd frequencies the two differences of opposite pixels. The factors are
constants of the code.

See :mod:`tigranet.ops.orientation_frequencies` for waves, components and terms.
"""

from typing import Any, NamedTuple, no_type_check

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tigranet.circular_harmonics import circular_harmonics
from tigranet.ops.cpu.vectors import Vector, fused_multiply_add, load_vector, pointer, store_vector
from tigranet.ops.orientation_frequencies import COMPONENTS, ORIENTATIONS, Term, real_waves, terms

MIN_FACTOR = 1e-12
"""Factors of the basis below this are rounding errors of zero."""


class _Wave(NamedTuple):
    """A real filter of the basis: its frequency, and its values at the centre and at two pixels of each orbit."""

    frequency: int
    centre: float
    factors: tuple[tuple[float, float], ...]


def _turned(pixel: tuple[int, int]) -> tuple[int, int]:
    """Return a pixel, as (line, column) from the centre, rotated by 90 degrees."""
    line, column = pixel
    return -column, line


def _orbits(size: int) -> list[list[tuple[int, int]]]:
    """Return the pixels of a filter outside its centre, in orbits of quarter turns."""
    reach = size // 2
    basis = circular_harmonics(size, ORIENTATIONS)[0]
    orbits = []
    for line in range(reach + 1):
        for column in range(1, reach + 1):
            if abs(basis[:, reach + line, reach + column]).max() > MIN_FACTOR:
                orbit = [(line, column)]
                for _ in range(3):
                    orbit.append(_turned(orbit[-1]))
                orbits.append(orbit)
    return orbits


def _waves(size: int) -> list[_Wave]:
    """Return the real filters of the basis."""
    basis, reach = circular_harmonics(size, ORIENTATIONS)[0], size // 2

    def value(place: int, pixel: tuple[int, int]) -> float:
        return float(basis[place, reach + pixel[0], reach + pixel[1]])

    return [
        _Wave(
            frequency,
            value(place + part, (0, 0)),
            tuple((value(place + part, orbit[0]), value(place + part, orbit[1])) for orbit in _orbits(size)),
        )
        for place, frequency in real_waves(size)
        for part in range(1 if frequency == 0 else 2)
    ]


def components_of(frequency: int) -> list[int]:
    """Return the places of the real and the imaginary part of a coefficient over the orientations.

    Args:
        frequency: One of :data:`~tigranet.ops.orientation_frequencies.FREQUENCIES`.

    Returns:
        One or two places among :data:`COMPONENTS`.
    """
    return [place for place, (m, _) in enumerate(COMPONENTS) if m == frequency]


class _Place(NamedTuple):
    """Where a term is: how many terms there are before those of its frequency, and of its frequency, and its number."""

    before: int
    of_frequency: int
    number: int


def _terms_of(size: int, frequency: int) -> list[tuple[_Place, Term]]:
    """Return the terms that are made of a coefficient of the input, with their places."""
    result, before = [], 0
    for of_frequency in terms(size):
        for number, term in enumerate(of_frequency):
            if term.component in components_of(frequency):
                result.append((_Place(before, len(of_frequency), number), term))
        before += len(of_frequency)
    return result


def terms_at_pixels(size: int, frequency: int) -> Any:
    """Return a function for compiled code that computes the terms of one coefficient of the input, for one feature.

    ``function(planes, at, step, width, out, out_at, feature, features, panel)`` reads the real part around
    ``planes[at]`` and the imaginary part around ``planes[at + step]``; a line of the image has ``width`` numbers. The
    terms are stored from ``out[out_at]`` on, in the order (frequency, feature, term, panel).

    Args:
        size: Side length of the filters.
        frequency: The frequency of the coefficient, one of :data:`~tigranet.ops.orientation_frequencies.FREQUENCIES`.

    Returns:
        The function.
    """
    parts, own_terms = components_of(frequency), _terms_of(size, frequency)

    @intrinsic
    @no_type_check
    def compute(typing_context, planes, at, step, width, out, out_at, feature, features, panel):
        @no_type_check
        def generate(context, builder, signature, args):
            planes_type, at_type = signature.args[0], args[1].type
            vector = context.get_value_type(Vector(planes_type.dtype))
            responses = {}
            for number, component in enumerate(parts):
                place = builder.add(args[1], builder.mul(args[2], ir.Constant(at_type, number)))
                centre = pointer(context, builder, planes_type, args[0], place)
                for wave, response in enumerate(_responses(builder, size, centre, args[3], vector)):
                    responses[wave, component] = response
            out_first = pointer(context, builder, signature.args[4], args[4], args[5])
            for place, term in own_terms:
                value = responses[term.wave, term.component]
                if term.factor:
                    combine = builder.fadd if term.factor > 0 else builder.fsub
                    value = combine(value, responses[term.other_wave, term.other_component])
                store_vector(builder, value, builder.gep(out_first, [_term_offset(builder, place, *args[6:9])]))
            return context.get_dummy_value()

        n = types.intp
        return types.void(planes, n, n, n, out, n, n, n, n), generate

    return compute


def add_gradient_at_pixels(size: int, frequency: int) -> Any:
    """Return a function for compiled code that adds the gradient by one coefficient of the input, for one feature.

    ``function(gradients, at, feature, features, panel, planes, planes_at, step, width, column_step)`` is the transpose
    of the function of :func:`terms_at_pixels`: it reads the gradients by the terms from ``gradients[at]`` on, and adds
    to the planes around ``planes[planes_at]`` and ``planes[planes_at + step]``. What belongs to the pixel c columns to
    the right is added at a distance of ``c * column_step``, to another copy of the planes: a CPU waits when it reads
    a vector that overlaps two vectors that it has just stored.

    Args:
        size: Side length of the filters.
        frequency: The frequency of the coefficient, one of :data:`~tigranet.ops.orientation_frequencies.FREQUENCIES`.

    Returns:
        The function.
    """
    parts, own_terms = components_of(frequency), _terms_of(size, frequency)

    @intrinsic
    @no_type_check
    def compute(
        typing_context, gradients, at, feature, features, panel, planes, planes_at, step, width, column_step
    ):  # fmt: skip
        @no_type_check
        def generate(context, builder, signature, args):
            at_type, planes_type = args[1].type, signature.args[5]
            vector = context.get_value_type(Vector(planes_type.dtype))
            first = pointer(context, builder, signature.args[0], args[0], args[1])
            responses = {}

            def add_to(key, value, factor):
                if key not in responses:
                    responses[key] = value if factor > 0 else builder.fneg(value)
                else:
                    combine = builder.fadd if factor > 0 else builder.fsub
                    responses[key] = combine(responses[key], value)

            for place, term in own_terms:
                address = builder.gep(first, [_term_offset(builder, place, *args[2:5])])
                value = load_vector(builder, address, vector)
                add_to((term.wave, term.component), value, 1)
                if term.factor:
                    add_to((term.other_wave, term.other_component), value, term.factor)
            for number, component in enumerate(parts):
                place = builder.add(args[6], builder.mul(args[7], ir.Constant(at_type, number)))
                centre = pointer(context, builder, planes_type, args[5], place)
                by_wave = [responses[wave, component] for wave in range(len(_waves(size)))]
                _add_gradient(builder, size, centre, args[8], args[9], by_wave)
            return context.get_dummy_value()

        n = types.intp
        return types.void(gradients, n, n, n, n, planes, n, n, n, n), generate

    return compute


@no_type_check
def _address(builder, centre, width, pixel, column_step=None):
    """Return the address of a pixel of a filter."""
    line, column = (ir.Constant(width.type, number) for number in pixel)
    columns = column if column_step is None else builder.mul(column, column_step)
    return builder.gep(centre, [builder.add(builder.mul(width, line), columns)])


@no_type_check
def _term_offset(builder, place, feature, features, panel):
    """Return where the term with a place among all terms is stored: (frequency, feature, term, panel)."""
    before, of_frequency, number = (ir.Constant(panel.type, x) for x in place)
    row = builder.add(builder.mul(features, before), builder.mul(feature, of_frequency))
    return builder.mul(builder.add(row, number), panel)


@no_type_check
def _scaled(builder, factor, value, total):
    """Return factor * value + total, where the total may be None."""
    constant = ir.Constant(value.type, [factor] * value.type.count)
    return builder.fmul(constant, value) if total is None else fused_multiply_add(builder, constant, value, total)


@no_type_check
def _responses(builder, size, centre, width, vector):
    """Return the responses of the pixels around an address to all waves."""
    waves = _waves(size)
    at_centre = load_vector(builder, centre, vector)
    totals = [
        _scaled(builder, wave.centre, at_centre, None) if abs(wave.centre) > MIN_FACTOR else None for wave in waves
    ]
    for number, orbit in enumerate(_orbits(size)):
        p = [load_vector(builder, _address(builder, centre, width, pixel), vector) for pixel in orbit]
        ends, others = builder.fadd(p[0], p[2]), builder.fadd(p[1], p[3])
        total, difference = builder.fadd(ends, others), builder.fsub(ends, others)
        opposite = builder.fsub(p[0], p[2]), builder.fsub(p[1], p[3])
        for place, wave in enumerate(waves):
            first, second = wave.factors[number]
            if wave.frequency % 2:
                products = (first, opposite[0]), (second, opposite[1])
            else:
                products = ((first, difference if wave.frequency % 4 else total),)
            for factor, value in products:
                if abs(factor) > MIN_FACTOR:
                    totals[place] = _scaled(builder, factor, value, totals[place])
    return totals


@no_type_check
def _add_gradient(builder, size, centre, width, column_step, gradients):
    """Add the gradient by the pixels around an address, from those by the responses."""
    waves, vector = _waves(size), gradients[0].type

    def combined(factors):
        total = None
        for factor, gradient in zip(factors, gradients, strict=True):
            if abs(factor) > MIN_FACTOR:
                total = _scaled(builder, factor, gradient, total)
        return total

    def add_at(pixel, value):
        address = _address(builder, centre, width, pixel, column_step)
        store_vector(builder, builder.fadd(load_vector(builder, address, vector), value), address)

    add_at((0, 0), combined([wave.centre for wave in waves]))
    for number, orbit in enumerate(_orbits(size)):
        first, second = ([wave.factors[number][i] for wave in waves] for i in range(2))
        remainders = [wave.frequency % 4 for wave in waves]
        total = combined([factor * (r == 0) for factor, r in zip(first, remainders, strict=True)])
        difference = combined([factor * (r == 2) for factor, r in zip(first, remainders, strict=True)])
        ends, others = builder.fadd(total, difference), builder.fsub(total, difference)
        opposite = [
            combined([factor * (r % 2) for factor, r in zip(factors, remainders, strict=True)])
            for factors in (first, second)
        ]
        add_at(orbit[0], builder.fadd(ends, opposite[0]))
        add_at(orbit[2], builder.fsub(ends, opposite[0]))
        add_at(orbit[1], builder.fadd(others, opposite[1]))
        add_at(orbit[3], builder.fsub(others, opposite[1]))
