"""The target cortex: the pair of files that CortexFoundation's runtime loads, for programs that its operators can express."""

from cvm.export.cortex.folder import write
from cvm.export.cortex.table import TABLE

__all__ = ["TABLE", "write"]
