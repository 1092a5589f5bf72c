"""Sums of products: Conv, ConvTranspose, Gemm, MatMul, Einsum, and what they absorb."""
