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
from tigranet.ops.orientation_frequencies import COMPONENTS, FREQUENCIES, ORIENTATIONS, Term, real_waves, terms

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


def _components_of(frequency: int) -> list[int]:
    """Return the places of the real and the imaginary part of a coefficient among the components."""
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
            if term.component in _components_of(frequency):
                result.append((_Place(before, len(of_frequency), number), term))
        before += len(of_frequency)
    return result


def terms_at_pixels(size: int) -> Any:
    """Return a function for compiled code that computes all terms of one feature at a vector of pixels.

    ``function(planes, at, step, width, out, out_at, feature, features, panel)`` reads the component c of the feature
    around ``planes[at + c * step]``; a line of the image has ``width`` numbers. The terms are stored from
    ``out[out_at]`` on, in the order (frequency, feature, term, panel).

    Args:
        size: Side length of the filters.

    Returns:
        The function.
    """

    @intrinsic
    @no_type_check
    def compute(typing_context, planes, at, step, width, out, out_at, feature, features, panel):
        @no_type_check
        def generate(context, builder, signature, args):
            planes_type, out_type = signature.args[0], signature.args[4]
            vector = context.get_value_type(Vector(planes_type.dtype))
            first = pointer(context, builder, planes_type, args[0], args[1])
            out_first = pointer(context, builder, out_type, args[4], args[5])
            for frequency in FREQUENCIES:
                responses = {
                    (wave, component): response
                    for component in _components_of(frequency)
                    for wave, response in enumerate(
                        _responses(builder, size, _component_at(builder, first, args[2], component), args[3], vector)
                    )
                }
                for place, term in _terms_of(size, frequency):
                    value = responses[term.wave, term.component]
                    if term.factor:
                        combine = builder.fadd if term.factor > 0 else builder.fsub
                        value = combine(value, responses[term.other_wave, term.other_component])
                    store_vector(builder, value, builder.gep(out_first, [_term_offset(builder, place, *args[6:9])]))
            return context.get_dummy_value()

        n = types.intp
        return types.void(planes, n, n, n, out, n, n, n, n), generate

    return compute


def add_gradient_at_pixels(size: int) -> Any:
    """Return a function for compiled code that adds the gradient by the planes of one feature at a vector of pixels.

    ``function(gradients, at, feature, features, panel, planes, planes_at, step, width, column_step)`` is the transpose
    of the function of :func:`terms_at_pixels`: it reads the gradients by the terms from ``gradients[at]`` on, and adds
    to the component c around ``planes[planes_at + c * step]``. What belongs to the pixel k columns to the right is
    added at a distance of ``k * column_step``, to another copy of the planes: a CPU waits when it reads a vector that
    overlaps two vectors that it has just stored.

    Args:
        size: Side length of the filters.

    Returns:
        The function.
    """

    @intrinsic
    @no_type_check
    def compute(
        typing_context, gradients, at, feature, features, panel, planes, planes_at, step, width, column_step
    ):  # fmt: skip
        @no_type_check
        def generate(context, builder, signature, args):
            gradients_type, planes_type = signature.args[0], signature.args[5]
            vector = context.get_value_type(Vector(planes_type.dtype))
            first = pointer(context, builder, gradients_type, args[0], args[1])
            planes_first = pointer(context, builder, planes_type, args[5], args[6])
            for frequency in FREQUENCIES:
                responses = _Sums(builder)
                for place, term in _terms_of(size, frequency):
                    address = builder.gep(first, [_term_offset(builder, place, *args[2:5])])
                    value = load_vector(builder, address, vector)
                    responses.add((term.wave, term.component), value, 1)
                    if term.factor:
                        responses.add((term.other_wave, term.other_component), value, term.factor)
                for component in _components_of(frequency):
                    centre = _component_at(builder, planes_first, args[7], component)
                    by_wave = [responses.totals[wave, component] for wave in range(len(_waves(size)))]
                    _add_gradient(builder, size, centre, args[8], args[9], by_wave)
            return context.get_dummy_value()

        n = types.intp
        return types.void(gradients, n, n, n, n, planes, n, n, n, n), generate

    return compute


class _Sums:
    """Sums of vectors, by name."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.totals: dict[tuple[int, int], Any] = {}

    def add(self, name: tuple[int, int], value: Any, factor: int) -> None:
        """Add a vector, or subtract it if the factor is negative."""
        if name not in self.totals:
            self.totals[name] = value if factor > 0 else self.builder.fneg(value)
        else:
            combine = self.builder.fadd if factor > 0 else self.builder.fsub
            self.totals[name] = combine(self.totals[name], value)


@no_type_check
def _component_at(builder, first, step, component):
    """Return the address of a component of a feature."""
    return builder.gep(first, [builder.mul(step, ir.Constant(step.type, component))])


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
