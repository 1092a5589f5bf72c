/* Sums of products: convolutions, and matrix products as convolutions of one place. Their order is free. */
#pragma once
#include "tensor_cores.cuh"

/* An image of N x height x width x channels, and windows over it. */
struct Convolution {
  int32_t samples, height, width, channels, out_height, out_width, outputs, kernel_height, kernel_width;
  int32_t stride_y, stride_x, dilation_y, dilation_x, top, left, groups, zero_point;

  __host__ __device__ constexpr int32_t rows() const { return samples * out_height * out_width; }
  /* The channels that an output reads, and the outputs that read them. */
  __host__ __device__ constexpr int32_t group_channels() const { return channels / groups; }
  __host__ __device__ constexpr int32_t group_outputs() const { return outputs / groups; }
  __host__ __device__ constexpr int32_t depth() const { return kernel_height * kernel_width * group_channels(); }
  /* Whether every place of every window lies in the image. */
  __host__ __device__ constexpr bool inside() const
  {
    const int32_t bottom = (out_height - 1) * stride_y - top + (kernel_height - 1) * dilation_y;
    const int32_t right = (out_width - 1) * stride_x - left + (kernel_width - 1) * dilation_x;
    return top <= 0 && left <= 0 && bottom < height && right < width;
  }
};

/* Where a window begins. */
struct Window {
  int32_t sample, top, left;
};

template <Convolution c>
__device__ inline Window window_of(int32_t row)
{
  const int32_t j = row % c.out_width;
  const int32_t i = row / c.out_width % c.out_height;
  return {row / c.out_width / c.out_height, i * c.stride_y - c.top, j * c.stride_x - c.left};
}

/* Where in the image the place begins that a window has at (p, q); negative outside of it. No pointer that is null or not: such
   ones were read at 0 on an H200, where ptxas 13.0 had put the comparison too close behind the instruction that clears them. */
template <Convolution c>
__device__ inline int32_t place_of(const Window &window, int32_t p, int32_t q)
{
  const int32_t u = window.top + p * c.dilation_y;
  const int32_t v = window.left + q * c.dilation_x;
  if (!c.inside() && (u < 0 || u >= c.height || v < 0 || v >= c.width)) return -1;
  return ((window.sample * c.height + u) * c.width + v) * c.channels;
}

/* The sum of one window for one output, of any types and groups. Weights have their outputs last. */
template <Convolution c, typename X, typename W>
__device__ inline int32_t window_sum(const X *x, const W *weights, int32_t row, int32_t o)
{
  constexpr int32_t each = c.group_channels();
  const int32_t from = o / c.group_outputs() * each;
  const Window window = window_of<c>(row);
  int32_t sum = 0;
  for (int32_t p = 0; p < c.kernel_height; p++) {
    for (int32_t q = 0; q < c.kernel_width; q++) {
      const int32_t place = place_of<c>(window, p, q);
      if (place < 0) continue;
      const W *tap = weights + (p * c.kernel_width + q) * each * c.outputs + o;
      for (int32_t k = 0; k < each; k++) sum += (x[place + from + k] - c.zero_point) * tap[k * c.outputs];
    }
  }
  return sum;
}

/* Give the sums of one window for four outputs, each of the channel of its number, to `finish(row, first, sums)`. */
template <Convolution c, typename X, typename Finish>
__device__ inline void channel_sums(
    const X *x, const int8_t *weights, const int32_t *biases, int32_t row, int32_t first, Finish finish)
{
  const Window window = window_of<c>(row);
  const Four<int32_t> start = four(biases + first);
  int32_t sums[4] = {start.at[0], start.at[1], start.at[2], start.at[3]};
#pragma unroll
  for (int32_t p = 0; p < c.kernel_height; p++) {
#pragma unroll
    for (int32_t q = 0; q < c.kernel_width; q++) {
      const int32_t place = place_of<c>(window, p, q);
      if (place < 0) continue;
      const Four<X> values = four(x + place + first);
      const Four<int8_t> tap = four(weights + (p * c.kernel_width + q) * c.outputs + first);
#pragma unroll
      for (int32_t k = 0; k < 4; k++) sums[k] += (values.at[k] - c.zero_point) * tap.at[k];
    }
  }
  finish(row, first, sums);
}

/* The sum at one place of the image that a transposed convolution gives; height to outputs are those of its operands. */
template <Convolution c, typename X, typename W>
__device__ inline int32_t transposed_sum(const X *x, const W *weights, int32_t row, int32_t o)
{
  constexpr int32_t each = c.group_channels();
  const int32_t from = o / c.group_outputs() * each;
  const int32_t v = row % c.out_width - c.left;
  const int32_t u = row / c.out_width % c.out_height - c.top;
  const X *image = x + row / c.out_width / c.out_height * c.height * c.width * c.channels;
  int32_t sum = 0;
  for (int32_t p = 0; p < c.kernel_height; p++) {
    const int32_t i = (u - p) / c.stride_y;
    if (u < p || (u - p) % c.stride_y || i >= c.height) continue;
    for (int32_t q = 0; q < c.kernel_width; q++) {
      const int32_t j = (v - q) / c.stride_x;
      if (v < q || (v - q) % c.stride_x || j >= c.width) continue;
      const X *place = image + (i * c.width + j) * c.channels + from;
      const W *tap = weights + (p * c.kernel_width + q) * each * c.outputs + o;
      for (int32_t k = 0; k < each; k++) sum += (place[k] - c.zero_point) * tap[k * c.outputs];
    }
  }
  return sum;
}

/* A word that holds an integer as often as it can. */
template <typename X>
__host__ __device__ constexpr uint32_t repeated(int32_t value)
{
  return sizeof(X) == 1 ? 0x01010101u * static_cast<uint8_t>(value) : 0x00010001u * static_cast<uint16_t>(value);
}

/* 16 integers of a window from its k-th on, of the group whose first channel x points to; outside the image and beyond the
   window's end those of the zero point. As many at once as surely lie in one place of the image. */
template <Convolution c, typename X>
__device__ inline Sixteen<X> window_integers(const X *x, const Window &window, int32_t k)
{
  constexpr int32_t each = c.group_channels();
  constexpr int32_t size = each % 16 == 0 ? 16 : each % 4 == 0 ? 4 : 1;
  constexpr int32_t bytes = sizeof(X);
  Sixteen<X> found;
#pragma unroll
  for (int32_t b = 0; b < 4 * bytes; b++) found.words[b] = repeated<X>(c.zero_point);
#pragma unroll
  for (int32_t b = 0; b < 16; b += size) {
    const int32_t channel = (k + b) % each, tap = (k + b) / each;
    const int32_t p = tap / c.kernel_width, q = tap % c.kernel_width;
    const int32_t place = p < c.kernel_height ? place_of<c>(window, p, q) : -1;
    if (place < 0) continue;
    if constexpr (size == 16) {
      found = *reinterpret_cast<const Sixteen<X> *>(x + place + channel);
    } else if constexpr (size == 4) {
      const auto piece = *reinterpret_cast<const Words<bytes> *>(x + place + channel);
#pragma unroll
      for (int32_t word = 0; word < bytes; word++) found.words[b / 4 * bytes + word] = piece.words[word];
    } else {
      constexpr uint32_t ones = bytes == 1 ? 0xffu : 0xffffu;
      const int32_t word = b * bytes / 4, shift = 8 * (b * bytes % 4);
      found.words[word] &= ~(ones << shift);
      found.words[word] |= (static_cast<uint32_t>(x[place + channel]) & ones) << shift;
    }
  }
  return found;
}

/* Give a warp's tile of sums of integers by bytes, 16 * high rows by 8 * wide outputs of a group, to
   `finish(row, first, sums)`, four neighbouring outputs at a time.

   The weights lie as the threads of a warp read them: for a column of 8 outputs and 64 bytes of depth, 16 bytes of each
   thread in turn; thread t has output t / 4 and the depth from 16 * (t % 4) on. Two such columns are 16 outputs, of which
   a thread gets four. Biases hold what the zero point takes away. Both are filled up to whole tiles, group by group. */
template <Convolution c, int high, int wide, typename X, typename Finish>
__device__ inline void tile_sums(const X *x, const int8_t *weights, const int32_t *biases, Finish finish)
{
  constexpr int32_t chunks = (c.depth() + 63) / 64;
  constexpr int32_t columns = (c.group_outputs() + 8 * wide - 1) / (8 * wide);
  const int32_t warp = thread() / 32, lane = thread() % 32;
  const int32_t row = warp / (columns * c.groups) * 16 * high + lane / 4;
  const int32_t column = warp % (columns * c.groups);
  const int32_t group = c.groups == 1 ? 0 : column / columns;
  if (warp / (columns * c.groups) * 16 * high >= c.rows()) return;
  Window windows[2 * high];
#pragma unroll
  for (int32_t m = 0; m < 2 * high; m++) {
    windows[m] = window_of<c>(row + 8 * m < c.rows() ? row + 8 * m : c.rows() - 1);
  }
  Sums<X, int8_t> sums[high][wide] = {};
  const Bytes16 *panel = reinterpret_cast<const Bytes16 *>(weights) + column * wide * chunks * 32 + lane;
#pragma unroll 2
  for (int32_t chunk = 0; chunk < chunks; chunk++) {
    Planes<X> a[2 * high];
#pragma unroll
    for (int32_t m = 0; m < 2 * high; m++) {
      a[m] = planes_of<X>(window_integers<c>(x + group * c.group_channels(), windows[m], chunk * 64 + lane % 4 * 16));
    }
#pragma unroll
    for (int32_t n = 0; n < wide; n++) {
      const Planes<int8_t> b = {{panel[(n * chunks + chunk) * 32]}};
#pragma unroll
      for (int32_t m = 0; m < high; m++) sums[m][n].add(a[2 * m], a[2 * m + 1], b);
    }
  }
#pragma unroll
  for (int32_t n = 0; n < wide; n += 2) {
    const int32_t place = 8 * n + lane % 4 * 4;
    const int32_t first = (column - group * columns) * 8 * wide + place;
    if (first >= c.group_outputs()) continue;
    const Four<int32_t> bias = four(biases + column * 8 * wide + place);
#pragma unroll
    for (int32_t m = 0; m < 2 * high; m++) {
      if (row + 8 * m >= c.rows()) continue;
      int32_t four_sums[4]; /* the first two are of tile n, the others of tile n + 1; its lower row comes third and fourth */
#pragma unroll
      for (int32_t k = 0; k < 4; k++) {
        const uint32_t sum = sums[m / 2][n + k / 2].total(m % 2 * 2 + k % 2);
        four_sums[k] = static_cast<int32_t>(sum + static_cast<uint32_t>(bias.at[k]));
      }
      finish(row + 8 * m, group * c.group_outputs() + first, four_sums);
    }
  }
}
