/* Windows without weights. Places outside the image do not count. */
#pragma once
#include "arithmetic.cuh"

/* An image of N x height x width x channels, and windows over it. */
struct Pooling {
  int32_t height, width, channels, out_height, out_width, kernel_height, kernel_width;
  int32_t stride_y, stride_x, top, left;
};

/* The part of a window that lies in the image, and its first element there, of one channel. */
template <typename X>
struct Part {
  const X *first;
  int32_t height, width;
};

/* That of the window whose result has the number t. */
template <Pooling w, typename X>
__device__ inline Part<X> part_of(const X *x, int32_t t)
{
  const int32_t c = t % w.channels;
  const int32_t j = t / w.channels % w.out_width;
  const int32_t i = t / w.channels / w.out_width % w.out_height;
  const int32_t n = t / w.channels / w.out_width / w.out_height;
  const int32_t top = i * w.stride_y - w.top, left = j * w.stride_x - w.left;
  const int32_t u = top < 0 ? 0 : top, v = left < 0 ? 0 : left;
  const int32_t bottom = top + w.kernel_height < w.height ? top + w.kernel_height : w.height;
  const int32_t right = left + w.kernel_width < w.width ? left + w.kernel_width : w.width;
  return {x + ((n * w.height + u) * w.width + v) * w.channels + c, bottom - u, right - v};
}

/* The greatest of a window. */
template <Pooling w, typename X>
__device__ inline X window_greatest(const X *x, int32_t t)
{
  const Part<X> part = part_of<w>(x, t);
  X greatest = *part.first;
  for (int32_t u = 0; u < part.height; u++) {
    for (int32_t v = 0; v < part.width; v++) {
      const X here = part.first[(u * w.width + v) * w.channels];
      if (here > greatest) greatest = here;
    }
  }
  return greatest;
}

/* The mean of a window without its zero point, by TOSA's reciprocal. */
template <Pooling w, typename X>
__device__ inline int64_t window_mean(const X *x, int32_t t, int32_t zero_point)
{
  const Part<X> part = part_of<w>(x, t);
  const int32_t count = part.height * part.width;
  int32_t sum = 0, bits = 0;
  while ((INT64_C(1) << bits) < count) bits++;
  const int64_t reciprocal = (INT64_C(1073741825) << bits) / count;
  for (int32_t u = 0; u < part.height; u++) {
    for (int32_t v = 0; v < part.width; v++) sum += part.first[(u * w.width + v) * w.channels] - zero_point;
  }
  return shift_half_up(sum * reciprocal, 30 + bits);
}
