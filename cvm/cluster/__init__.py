"""Work on many samples, spread over the workers of a Dask cluster.

The caller cuts the samples into blocks and takes the results in the order of the
blocks, so that nothing depends on how many workers there are, which of them was faster
or which was lost. Dask itself passes objects to its workers as Python's pickles: a
cluster is trusted, and nothing of a stranger's file is passed but arrays and bytes that
were checked before.
"""

from cvm.cluster.connection import Cluster, connected
from cvm.cluster.opened import opened

__all__ = ["Cluster", "connected", "opened"]
