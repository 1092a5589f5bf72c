/* Helpers that C++20 and a GPU have shorter than C99: shifts of negative numbers round down. */
#pragma once
#include "threads.cuh"

/* The greatest integer not above x / 2^shift. */
__device__ inline int64_t floor_shift(int64_t x, int32_t shift)
{
  return x >> shift;
}

/* The integer nearest to x / 2^shift; a half goes up. */
__device__ inline int64_t shift_half_up(int64_t x, int32_t shift)
{
  return shift == 0 ? x : ((x >> (shift - 1)) + 1) >> 1;
}

/* The integer nearest to x * multiplier / 2^shift, 2 <= shift <= 62; a half goes up. */
__device__ inline int64_t scaled(int64_t x, int32_t multiplier, int32_t shift)
{
  return (x * multiplier + (INT64_C(1) << (shift - 1))) >> shift;
}

/* The same where the product plus the half fits 32 bits, and 1 <= shift <= 31. */
__device__ inline int32_t scaled_in_32_bits(int32_t x, int32_t multiplier, int32_t shift)
{
  const uint32_t product = static_cast<uint32_t>(x) * static_cast<uint32_t>(multiplier);
  return static_cast<int32_t>(product + (UINT32_C(1) << (shift - 1))) >> shift;
}

/* The number of leading zeros of the 32 bits of x. */
__device__ inline int32_t leading_zeros(int32_t x)
{
#ifdef __CUDACC__
  return __clz(x);
#else
  return std::countl_zero(static_cast<uint32_t>(x));
#endif
}
