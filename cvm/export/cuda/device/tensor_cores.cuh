/* Products of 16 x 32 by 32 x 8 bytes, which the 32 threads of a warp compute together. Sums of 32 bits wrap around. */
#pragma once
#include "threads.cuh"

/* 16 bytes that follow each other. */
struct alignas(16) Bytes16 {
  uint32_t words[4];
};

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
  add_products(sums, upper.words[0], lower.words[0], upper.words[1], lower.words[1], b.words[0], b.words[1]);
  add_products(sums, upper.words[2], lower.words[2], upper.words[3], lower.words[3], b.words[2], b.words[3]);
}
