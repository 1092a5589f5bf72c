/* Products of 16 x 32 by 32 x 8 bytes, which the 32 threads of a warp compute together, and what is made of them: products
   of integers of one or two bytes. Sums of 32 bits wrap around. */
#pragma once
#include "threads.cuh"

/* Words that follow each other. */
template <int count>
struct alignas(4 * count) Words {
  uint32_t words[count];
};
using Bytes16 = Words<4>;

#ifdef __CUDACC__
#define ADD_PRODUCTS(a_type, b_type) \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." a_type "." b_type ".s32 " \
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]) \
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))

/* Add the products of two rows of a, 8 apart, and a column of b to this thread's sums: of both rows, at two columns. */
template <bool a_signed, bool b_signed>
__device__ inline void add_products(int32_t (&sums)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
  if constexpr (a_signed && b_signed) ADD_PRODUCTS("s8", "s8");
  if constexpr (a_signed && !b_signed) ADD_PRODUCTS("s8", "u8");
  if constexpr (!a_signed && b_signed) ADD_PRODUCTS("u8", "s8");
  if constexpr (!a_signed && !b_signed) ADD_PRODUCTS("u8", "u8");
}
#undef ADD_PRODUCTS
#else
#include "warp_on_cpu.h"
#endif

/* The same of 64 bytes a row: which of them come first does not matter, as long as a and b agree. */
template <bool a_signed = true, bool b_signed = true>
__device__ inline void add_products(int32_t (&sums)[4], const Bytes16 &upper, const Bytes16 &lower, const Bytes16 &b)
{
  const uint32_t(&u)[4] = upper.words, (&l)[4] = lower.words;
  add_products<a_signed, b_signed>(sums, u[0], l[0], u[1], l[1], b.words[0], b.words[1]);
  add_products<a_signed, b_signed>(sums, u[2], l[2], u[3], l[3], b.words[2], b.words[3]);
}

/* Four integers by their bytes: a word for the lowest of each comes first. */
template <typename T>
__device__ inline Words<sizeof(T)> bytes_apart(const Words<sizeof(T)> &four)
{
  if constexpr (sizeof(T) == 1) {
    return four;
  } else {
    return {{__byte_perm(four.words[0], four.words[1], 0x6420), __byte_perm(four.words[0], four.words[1], 0x7531)}};
  }
}

/* 16 integers by their bytes, the lowest of each first; only their highest are signed. */
template <typename T>
struct Planes {
  Bytes16 at[sizeof(T)];
};

/* 16 integers side by side. */
template <typename T>
using Sixteen = Words<4 * sizeof(T)>;

template <typename T>
__device__ inline Planes<T> planes_of(const Sixteen<T> &integers)
{
  Planes<T> planes;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    Words<sizeof(T)> four;
#pragma unroll
    for (uint32_t word = 0; word < sizeof(T); word++) four.words[word] = integers.words[k * sizeof(T) + word];
    const Words<sizeof(T)> apart = bytes_apart<T>(four);
#pragma unroll
    for (uint32_t plane = 0; plane < sizeof(T); plane++) planes.at[plane].words[k] = apart.words[plane];
  }
  return planes;
}

/* Four sums of products of integers, kept apart by the power of 256 that their bytes have together. */
template <typename A, typename B>
struct Sums {
  static constexpr int a_last = sizeof(A) - 1, b_last = sizeof(B) - 1;
  int32_t parts[a_last + b_last + 1][4];

  __device__ void add(const Planes<A> &upper, const Planes<A> &lower, const Planes<B> &b)
  {
    add_products<true, true>(parts[a_last + b_last], upper.at[a_last], lower.at[a_last], b.at[b_last]);
    if constexpr (a_last) add_products<false, true>(parts[b_last], upper.at[0], lower.at[0], b.at[b_last]);
    if constexpr (b_last) add_products<true, false>(parts[a_last], upper.at[a_last], lower.at[a_last], b.at[0]);
    if constexpr (a_last && b_last) add_products<false, false>(parts[0], upper.at[0], lower.at[0], b.at[0]);
  }

  __device__ uint32_t total(int k) const
  {
    uint32_t sum = 0;
#pragma unroll
    for (int power = a_last + b_last; power >= 0; power--) sum = (sum << 8) + static_cast<uint32_t>(parts[power][k]);
    return sum;
  }
};
