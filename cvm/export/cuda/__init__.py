"""The target `cuda`: kernels for GPUs by NVIDIA, which a compiler of C++ builds for a processor, too."""

from cvm.export.cuda.folder import write
from cvm.export.cuda.table import TABLE

__all__ = ["TABLE", "write"]
