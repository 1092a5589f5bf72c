"""The field of the constraints: integers modulo the order of the curve BN254."""

from __future__ import annotations

import numpy as np

from cvm.program import IntArray

PRIME = 21888242871839275222246405745257275088548364400416034343698204186575808495617
BYTES = 32  # of an element
WORDS = BYTES // 4


def field_elements(numbers: IntArray) -> IntArray:
    """Integers as elements of the field, in 32-bit words, the lowest first: [N,8].

    Those of 64 bits are below 2^62 in size; Python's integers may have any.
    """
    if numbers.dtype == object:
        residues = [int(n) % PRIME for n in numbers]
        data = b"".join(n.to_bytes(BYTES, "little") for n in residues)
        return np.frombuffer(data, "<u4").reshape(-1, WORDS)
    assert int(np.abs(numbers).max(initial=0)) <= 2**62
    words = np.zeros((len(numbers), WORDS), "<u4")
    prime = np.frombuffer(PRIME.to_bytes(BYTES, "little"), "<u4")
    lowest = np.uint64(PRIME & (2**64 - 1))  # more than 2^62: no borrow
    negative = numbers < 0
    low = np.where(
        negative,
        lowest - np.abs(numbers).astype(np.uint64),
        numbers.astype(np.uint64),
    )
    words[:, 0] = low & np.uint64(2**32 - 1)
    words[:, 1] = low >> np.uint64(32)
    words[negative, 2:] = prime[2:]
    return words
