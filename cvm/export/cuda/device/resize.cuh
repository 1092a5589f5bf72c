/* Sampling at rational positions. */
#pragma once
#include "threads.cuh"

/* On one axis: place i of the result stands at i * d + offset in units of 1 / n. */
struct Axis {
  int32_t size, n, d, offset;
};

/* The two neighbours of a position, and how far it is from the first, in units of 1 / n. */
struct Neighbours {
  int32_t before, after, rest;
};

template <Axis a>
__device__ inline Neighbours neighbours(int32_t i)
{
  const int32_t at = i * a.d + a.offset;
  const int32_t floor = (at + a.n) / a.n - 1; /* the offset is not below -n */
  return {floor < 0 ? 0 : floor, floor + 1 < a.size ? floor + 1 : a.size - 1, at - floor * a.n};
}

/* Of an image of N x height x width x channels, the element number t of the result. */
template <Axis down, Axis across, typename X>
__device__ inline X nearest(const X *x, int32_t t, int32_t out_height, int32_t out_width, int32_t channels)
{
  const int32_t place = t / channels;
  const Neighbours row = neighbours<down>(place / out_width % out_height);
  const Neighbours column = neighbours<across>(place % out_width);
  const int32_t u = 2 * row.rest >= down.n ? row.after : row.before;
  const int32_t v = 2 * column.rest >= across.n ? column.after : column.before;
  return x[((place / out_width / out_height * down.size + u) * across.size + v) * channels + t % channels];
}

template <Axis down, Axis across, typename X>
__device__ inline int32_t bilinear(const X *x, int32_t t, int32_t out_height, int32_t out_width, int32_t channels)
{
  const int32_t place = t / channels;
  const Neighbours row = neighbours<down>(place / out_width % out_height);
  const Neighbours column = neighbours<across>(place % out_width);
  const X *image = x + place / out_width / out_height * down.size * across.size * channels + t % channels;
  const X *top = image + row.before * across.size * channels;
  const X *bottom = image + row.after * across.size * channels;
  const int32_t left = column.before * channels, right = column.after * channels, rest = column.rest;
  const int32_t upper = top[left] * (across.n - rest) + top[right] * rest;
  const int32_t lower = bottom[left] * (across.n - rest) + bottom[right] * rest;
  return upper * (down.n - row.rest) + lower * row.rest;
}
