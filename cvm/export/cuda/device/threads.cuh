/* Threads: x counts them within a sample, y counts samples. */
#pragma once
#include <cstdint>
#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "on_cpu.h"
#endif

/* The number of this thread among those of its sample. */
__device__ inline int32_t thread()
{
  return static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
}

/* What this thread's sample has where the first sample has `first`; samples lie `apart` bytes from each other. */
template <int64_t apart, typename T>
__device__ inline T *of_sample(T *first)
{
  return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(first) + blockIdx.y * apart);
}

/* Bytes that move together. */
template <int count>
struct alignas(count) Piece {
  int8_t bytes[count];
};

/* Four elements side by side, which move together. */
template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T at[4];
};

template <typename T>
__device__ inline Four<T> &four(T *first)
{
  return *reinterpret_cast<Four<T> *>(first);
}

template <typename T>
__device__ inline const Four<T> &four(const T *first)
{
  return *reinterpret_cast<const Four<T> *>(first);
}

#ifdef __CUDACC__
/* Start a kernel with at least so many threads for each sample. */
template <typename... Parameters>
void launch(int32_t threads, int32_t samples, void (*kernel)(Parameters...), Parameters... arguments)
{
  const uint32_t block = 128;
  const dim3 grid((static_cast<uint32_t>(threads) + block - 1) / block, static_cast<uint32_t>(samples));
  kernel<<<grid, block>>>(arguments...);
}

/* The same of a kernel whose warps compute together. */
template <typename... Parameters>
void launch_warps(int32_t threads, int32_t samples, void (*kernel)(Parameters...), Parameters... arguments)
{
  launch(threads, samples, kernel, arguments...);
}
#endif
