"""Export to StableHLO, by the functions of cvm/xla: for jax, and for all that XLA compiles for."""

from cvm.export.stablehlo.folder import write as write
