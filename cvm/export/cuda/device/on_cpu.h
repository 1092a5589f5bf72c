/* The names of CUDA that a program uses, on a processor: kernels run one thread after the other. It is slow, and for
   those who want to see what the kernels compute without a GPU. */
#pragma once
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define __global__
#define __host__
#define __device__
#define __restrict__ /* g++ 12 at -O2 made wrong code of it */

struct Numbers {
  uint32_t x, y;
};
inline Numbers blockIdx, blockDim, threadIdx;

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

inline cudaError_t cudaMalloc(void **place, size_t bytes)
{
  *place = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *place ? cudaSuccess : cudaErrorMemoryAllocation;
}

inline cudaError_t cudaFree(void *place)
{
  free(place);
  return cudaSuccess;
}

inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
  memcpy(to, from, bytes);
  return cudaSuccess;
}

inline cudaError_t cudaMemcpy2D(
    void *to, size_t to_apart, const void *from, size_t from_apart, size_t bytes, size_t count, cudaMemcpyKind)
{
  for (size_t k = 0; k < count; k++) {
    memcpy(static_cast<char *>(to) + k * to_apart, static_cast<const char *>(from) + k * from_apart, bytes);
  }
  return cudaSuccess;
}

inline cudaError_t cudaGetLastError()
{
  return cudaSuccess;
}

inline const char *cudaGetErrorString(cudaError_t error)
{
  return error == cudaSuccess ? "no error" : "out of memory";
}

/* Four of the eight bytes of two words, each named by four bits of `places`. */
inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t places)
{
  const uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
  uint32_t word = 0;
  for (int k = 0; k < 4; k++) word |= (static_cast<uint32_t>(bytes >> (places >> 4 * k & 7) * 8) & 0xff) << 8 * k;
  return word;
}

/* Start a kernel with so many threads for each sample; `run` is called once for 32 of them. */
template <typename Run>
void launch_blocks(int32_t threads, int32_t samples, Run run)
{
  blockDim = {32, 1};
  for (blockIdx.y = 0; blockIdx.y < static_cast<uint32_t>(samples); blockIdx.y++) {
    for (blockIdx.x = 0; blockIdx.x * 32 < static_cast<uint32_t>(threads); blockIdx.x++) run();
  }
}

template <typename... Parameters>
void launch(int32_t threads, int32_t samples, void (*kernel)(Parameters...), Parameters... arguments)
{
  launch_blocks(threads, samples, [&] {
    for (threadIdx.x = 0; threadIdx.x < 32; threadIdx.x++) kernel(arguments...);
  });
}
