/* $TITLE
   Written by cvm $VERSION. C++20 and CUDA; no floating point. */
#include <algorithm>
#include "$NAME.h"
#include "arithmetic.cuh"

$HELPERS

$INCLUDES

$KERNELS

extern "C" const unsigned char ${NAME}_constants[];

static const int64_t sample_bytes = $SAMPLE_BYTES;
static const int64_t constant_bytes = $BYTES;
static const int32_t most_samples = 256; /* at once */

static unsigned char *constants, *values;
static int32_t room; /* samples that `values` has memory for */
static cudaError_t failure = cudaSuccess;

/* Whether there was no error; one is remembered here, and forgotten by CUDA, which would give it to a later run. */
static bool good(cudaError_t error)
{
  if (error == cudaSuccess) return true;
  failure = error;
  cudaGetLastError();
  return false;
}

template <typename T>
static const T *constant(int64_t offset)
{
  return reinterpret_cast<const T *>(constants + offset);
}

template <typename T>
static T *value(int64_t offset)
{
  return reinterpret_cast<T *>(values + offset);
}

/* Bring the constants to the GPU, once. */
static bool has_weights()
{
  if (constants) return true;
  void *place;
  if (!good(cudaMalloc(&place, constant_bytes + 1))) return false;
  if (!good(cudaMemcpy(place, ${NAME}_constants, constant_bytes, cudaMemcpyHostToDevice))) {
    cudaFree(place);
    return false;
  }
  constants = static_cast<unsigned char *>(place);
  return true;
}

/* Take memory for so many samples, or for as many as the GPU has memory for. */
static bool has_room(int32_t wanted)
{
  if (room >= wanted) return true;
  cudaFree(values);
  values = nullptr;
  room = 0;
  for (; wanted > 0; wanted /= 2) {
    void *place;
    if (!good(cudaMalloc(&place, wanted * sample_bytes + 1))) continue;
    values = static_cast<unsigned char *>(place);
    room = wanted;
    return true;
  }
  return false;
}

static bool to_gpu(int64_t place, const void *field, size_t bytes, int32_t count)
{
  const size_t apart = sizeof(${NAME}_inputs);
  return good(cudaMemcpy2D(values + place, sample_bytes, field, apart, bytes, count, cudaMemcpyHostToDevice));
}

static bool from_gpu(void *field, int64_t place, size_t bytes, int32_t count)
{
  const size_t apart = sizeof(${NAME}_outputs);
  return good(cudaMemcpy2D(field, apart, values + place, sample_bytes, bytes, count, cudaMemcpyDeviceToHost));
}

/* 0, or the number of the first input that holds an integer outside its interval. */
static int refused([[maybe_unused]] const ${NAME}_inputs *inputs)
{
$CHECKS
  return 0;
}

/* Run samples that there is room for. */
static bool run_at_once(const ${NAME}_inputs *inputs, ${NAME}_outputs *outputs, int32_t count)
{
$COPY_IN
$LAUNCHES
  if (!good(cudaGetLastError())) return false;
$COPY_OUT
  return true;
}

int ${NAME}_run_many(const ${NAME}_inputs *inputs, ${NAME}_outputs *outputs, int32_t count)
{
  for (int32_t k = 0; k < count; k++) {
    const int number = refused(inputs + k);
    if (number) return number;
  }
  cudaGetLastError(); /* forgets what failed before this call */
  if (!has_weights() || !has_room(std::min(count, most_samples))) return -1;
  for (int32_t done = 0; done < count;) {
    const int32_t part = std::min(count - done, room);
    if (!run_at_once(inputs + done, outputs + done, part)) return -1;
    done += part;
  }
  return 0;
}

int ${NAME}_run(const ${NAME}_inputs *inputs, ${NAME}_outputs *outputs)
{
  return ${NAME}_run_many(inputs, outputs, 1);
}

const char *${NAME}_error(void)
{
  return cudaGetErrorString(failure);
}

void ${NAME}_close(void)
{
  cudaFree(constants);
  cudaFree(values);
  constants = values = nullptr;
  room = 0;
}
