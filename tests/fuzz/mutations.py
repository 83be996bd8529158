"""Random changes of valid files: truncation, bit flips, splices, and edits of numbers such as lengths and offsets."""

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

BOUNDARY_NUMBERS = (
    0,
    1,
    2,
    3,
    8,
    127,
    128,
    255,
    256,
    4096,
    32767,
    32768,
    65535,
    2**24,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63,
)
"""Numbers at which lengths, sizes and offsets go wrong."""
NUMBER_FORMATS = ("B", "<H", ">H", "<I", ">I", "<Q", ">Q")


@st.composite
def mutated(draw: Any, seeds: Sequence[bytes], max_mutations: int = 4) -> bytes:
    """Draw one of ``seeds`` with up to ``max_mutations`` random changes."""
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, max_mutations))):
        content = _mutate(draw, content, seeds)
    return content


def _mutate(draw: Any, content: bytes, seeds: Sequence[bytes]) -> bytes:
    length = len(content)
    position = draw(st.integers(0, min(length, 64)) | st.integers(0, length))
    kind = draw(st.sampled_from(("bit", "number", "truncate", "delete", "repeat", "insert", "splice")))
    if kind == "bit" and position < length:
        flipped = content[position] ^ (1 << draw(st.integers(0, 7)))
        return content[:position] + bytes([flipped]) + content[position + 1 :]
    if kind == "number":
        number_format = draw(st.sampled_from(NUMBER_FORMATS))
        size = struct.calcsize(number_format)
        number = draw(st.sampled_from(BOUNDARY_NUMBERS) | st.integers(0, 2**64 - 1)) % 2 ** (8 * size)
        return content[:position] + struct.pack(number_format, number) + content[position + size :]
    if kind == "truncate":
        return content[:position]
    end = draw(st.integers(position, min(length, position + 64)))
    if kind == "delete":
        return content[:position] + content[end:]
    if kind == "repeat":
        return content[:end] + content[position:end] * draw(st.integers(1, 200)) + content[end:]
    if kind == "insert":
        return content[:position] + draw(st.binary(max_size=32)) + content[position:]
    other = draw(st.sampled_from(seeds))
    return content[:position] + other[draw(st.integers(0, len(other))) :]


def with_png_checksums(content: bytes) -> bytes:
    """Correct the checksums of the chunks of a PNG file, without which Pillow reads no further."""
    signature, position = content[:8], 8
    chunks = []
    while position + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, position)
        body = content[position + 4 : position + 8 + length]
        if len(body) < 4 + length:
            break
        chunks.append(content[position : position + 4] + body + struct.pack(">I", zlib.crc32(body)))
        position += 12 + length
    return signature + b"".join(chunks) + content[position:]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from((-1, 0, 1, 10**9, 10**30, 1e308, "3", "", "paper", "SC[1,1]-S[1]", "\ud800", "\0"))
    | st.floats()
    | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=8,
)
"""Values of JSON, and what Python writes as such: NaN, infinity and lone surrogates."""


@st.composite
def mutated_json(draw: Any, value: Any) -> bytes:
    """Draw JSON text of a value in which some values, names or bytes were changed."""
    changed = value
    for _ in range(draw(st.integers(1, 3))):
        changed = _replace(draw, changed)
    text = json.dumps(changed).encode()
    return draw(mutated([text], 2)) if draw(st.booleans()) else text


def _replace(draw: Any, value: Any) -> Any:
    """Replace, remove or add something at a random depth."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 5)) == 0:
        return draw(json_values)
    entries = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    key = draw(st.sampled_from(list(entries)))
    action = draw(st.sampled_from(("inside", "inside", "inside", "remove", "add")))
    if action == "inside":
        entries[key] = _replace(draw, entries[key])
    elif action == "remove":
        del entries[key]
    else:
        entries[draw(st.text(max_size=8)) if isinstance(value, dict) else len(entries)] = draw(json_values)
    return entries if isinstance(value, dict) else list(entries.values())
