"""Commitments: an array is bound by a hash of its elements and of a salt, which hides them from whoever tries out arrays.

An integer is written as its distance from the least one of its dtype; as many as fit into 248 bits are one element of the field,
the first in the lowest bits. The commitment is hash(.. hash(hash(salt, e1, e2, e3), e4, e5, e6) ..), filled up with zeros.
Before the integers come 64 bits of a tag, dtype and count: no two arrays are written alike, also those of different programs.
And e1 has 2^248 besides, so that the first hash is like no later one: nobody opens the end of an array with the hash of its
beginning for a salt.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvm.export.r1cs import poseidon
from cvm.export.r1cs.poseidon_rows import hashed
from cvm.export.r1cs.secret import Secret, constant, joined
from cvm.export.r1cs.system import System
from cvm.program import DTYPE_CODES, DTYPE_RANGES, IntArray

SALT_BYTES = 31
PACKED_BITS = 8 * SALT_BYTES
TAG_BITS = 64
FIRST = 2**PACKED_BITS
EACH = poseidon.RATE - 1  # elements that a hash takes besides the one before


def commitment_of(array: IntArray, dtype: str, salt: int) -> int:
    """The commitment of an array."""
    digest = salt
    elements = array.reshape(-1).astype(object) - DTYPE_RANGES[dtype][0]
    natural = np.concatenate([_tag(dtype, array.size), elements])
    packed = [
        int((natural[span] * _weights(dtype)[: len(natural[span])]).sum())
        for span in _parts(natural.size, _a_pack(dtype))
    ]
    packed[0] += FIRST
    for span in _parts(len(packed), EACH):
        block = packed[span]
        zeros = [0] * (EACH - len(block))
        digest = poseidon.digest([digest, *block, *zeros])
    return digest


def committed(system: System, x: Secret, dtype: str, salt: Secret) -> Secret:
    """A wire for the commitment of wires that are known to be in the range of a dtype."""
    tag = constant(_tag(dtype, x.constants.size))
    natural = joined([tag, x.flat().minus(DTYPE_RANGES[dtype][0])])
    packs = [
        _packed(natural.at(span), _weights(dtype))
        for span in _parts(natural.constants.size, _a_pack(dtype))
    ]
    packs[0] = packs[0].plus(np.array([FIRST], object))
    digest = salt
    for span in _parts(len(packs), EACH):
        block = packs[span]
        zeros = [constant(np.zeros(1, np.int64))] * (EACH - len(block))
        elements = _wires(system, joined([*block, *zeros]))
        digest = hashed(system, joined([digest, elements]))
    return digest


def _wires(system: System, x: Secret) -> Secret:
    """One wire for each element, because the rows of a hash refer to wires."""
    wires = system.new(x.values)
    system.require_equal(x, wires)
    return wires


def _packed(x: Secret, weights: IntArray) -> Secret:
    """One weighted sum of a vector."""
    count = x.constants.size
    return x.times(weights[:count]).reshaped((1, count)).total()


def _tag(dtype: str, count: int) -> IntArray:
    """The count and then the dtype's code, 32 bits each, as integers of as many bits as the elements."""
    tag, bits = DTYPE_CODES[dtype] << 32 | count, _bits(dtype)
    places = range(0, TAG_BITS, bits)
    return np.array([tag >> place & (1 << bits) - 1 for place in places])


def _a_pack(dtype: str) -> int:
    """How many integers an element of the field holds."""
    return PACKED_BITS // _bits(dtype)


def _weights(dtype: str) -> IntArray:
    return np.array(
        [1 << (_bits(dtype) * place) for place in range(_a_pack(dtype))], object
    )


def _bits(dtype: str) -> int:
    low, high = DTYPE_RANGES[dtype]
    return (high - low).bit_length()


def _parts(count: int, size: int) -> Iterator[slice]:
    for first in range(0, count, size):
        yield slice(first, first + size)
