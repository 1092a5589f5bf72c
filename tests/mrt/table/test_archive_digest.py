"""The digest of an archive that nobody keeps is that of the archive."""

import hashlib
import io

import numpy as np

from cvm.file.npy import write_npz
from mrt.table.archive_digest import ArchiveDigest
from mrt.table.decisions import Decisions, LayerDecision

SIZES = (5, 100_000, 0, 70_000)


def test_the_digest_is_that_of_the_bytes():
    arrays = {
        f"w{size}": np.arange(size, dtype=np.int16) * 31 for size in SIZES
    }
    archive, digest = io.BytesIO(), ArchiveDigest()
    write_npz(archive, arrays)
    write_npz(digest, arrays)
    expected = hashlib.sha256(archive.getvalue()).hexdigest()
    assert digest.hexdigest() == expected


def test_a_digest_keeps_one_member():
    """200 layers share 80 kB of weights, which are 16 MB of archive."""
    kept = []

    class Watched(ArchiveDigest):
        def write(self, data):
            written = super().write(data)
            kept.append(len(self._member))
            return written

    weights = np.ones((100, 800), np.int8)
    layer = LayerDecision(weights, np.ones(100), np.zeros(100))
    decisions = Decisions(layers={f"step{i}": layer for i in range(200)})
    digest = Watched()
    decisions.write(digest)
    assert digest.tell() > 200 * weights.nbytes
    assert max(kept) < 2 * weights.nbytes
    assert digest.hexdigest() == decisions.sha256
