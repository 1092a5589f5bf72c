/* Along an axis: sums, extremes, their indices. Elements of one line lie `inner` apart. */
#pragma once
#include "threads.cuh"

/* The first element of the line whose result has the number t. */
template <typename X>
__device__ inline const X *line_of(const X *x, int32_t t, int32_t count, int32_t inner)
{
  return x + t / inner * count * inner + t % inner;
}

template <typename X>
__device__ inline int32_t sum_along(const X *line, int32_t count, int32_t inner)
{
  int32_t sum = 0;
  for (int32_t k = 0; k < count; k++) sum += line[k * inner];
  return sum;
}

/* The index of the first among the greatest. */
template <typename X>
__device__ inline int32_t greatest_along(const X *line, int32_t count, int32_t inner)
{
  int32_t found = 0;
  for (int32_t k = 1; k < count; k++) found = line[k * inner] > line[found * inner] ? k : found;
  return found;
}

/* The index of the first among the least. */
template <typename X>
__device__ inline int32_t least_along(const X *line, int32_t count, int32_t inner)
{
  int32_t found = 0;
  for (int32_t k = 1; k < count; k++) found = line[k * inner] < line[found * inner] ? k : found;
  return found;
}
