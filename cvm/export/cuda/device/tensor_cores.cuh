/* Products of 16 x 32 by 32 x 8 bytes, which the 32 threads of a warp compute together. Sums of 32 bits wrap around. */
#pragma once
#include <cstring>
#include "threads.cuh"

/* 16 bytes that follow each other. */
using Bytes16 = Piece<16>;

/* The n-th four of them. */
__device__ inline uint32_t word(const Bytes16 &from, int32_t n)
{
  uint32_t found;
  memcpy(&found, from.bytes + 4 * n, 4);
  return found;
}

#ifdef __CUDACC__
/* Add the products of two rows of a, 8 apart, and a column of b to this thread's sums: of both rows, at two columns. */
__device__ inline void add_products(int32_t (&sums)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#else
#include "warp_on_cpu.h"
#endif

/* The same of 64 bytes a row: which of them come first does not matter, as long as a and b agree. */
__device__ inline void add_products(int32_t (&sums)[4], const Bytes16 &upper, const Bytes16 &lower, const Bytes16 &b)
{
  add_products(sums, word(upper, 0), word(lower, 0), word(upper, 1), word(lower, 1), word(b, 0), word(b, 1));
  add_products(sums, word(upper, 2), word(lower, 2), word(upper, 3), word(lower, 3), word(b, 2), word(b, 3));
}
