// Pooling with AVX-512: 64 bytes of channels at a time, the last of them masked.
#include "kernels/pooling.h"

#include "kernels/avx512.h"

namespace cvm {
namespace {

// The first `count` of 64 bytes; all of them from 64 on.
__mmask64 first_bytes(int64_t count) { return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1; }

template <typename T>
__m512i greater(__m512i x, __m512i y) {
  if constexpr (sizeof(T) == 1) return _mm512_max_epu8(x, y);
  if constexpr (sizeof(T) == 2) return _mm512_max_epi16(x, y);
  return _mm512_max_epi32(x, y);
}

template <typename T>
void greatest(const PoolRun& run, const T* from, T* to) {
  constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t place = 0; place < run.count; ++place, from += run.from_step, to += run.to_step) {
    for (int64_t channel = 0; channel < run.width; channel += kLanes) {
      const __mmask64 mask = first_bytes((run.width - channel) * static_cast<int64_t>(sizeof(T)));
      __m512i best = _mm512_maskz_loadu_epi8(mask, from + channel);
      for (int64_t row = 0; row < run.rows; ++row) {
        const T* x = from + channel + row * run.row_step;
        for (int64_t column = 0; column < run.columns; ++column, x += run.column_step) {
          best = greater<T>(best, _mm512_maskz_loadu_epi8(mask, x));
        }
      }
      _mm512_mask_storeu_epi8(to + channel, mask, best);
    }
  }
}

constexpr int64_t kLanes = 16;

__mmask16 first(int64_t count) { return static_cast<__mmask16>(count >= kLanes ? 0xFFFF : (1u << count) - 1); }

__m512i widened(__mmask16 mask, const uint8_t* x) { return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, x)); }
__m512i widened(__mmask16 mask, const int16_t* x) { return _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(mask, x)); }

// Vectors of channels side by side, each with the same mask.
template <int kVectors, typename T>
void sum_block(const PoolRun& run, __mmask16 mask, const T* from, int32_t* to) {
  __m512i sums[kVectors];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (int64_t row = 0; row < run.rows; ++row) {
    const T* x = from + row * run.row_step;
    for (int64_t column = 0; column < run.columns; ++column, x += run.column_step) {
      for (int i = 0; i < kVectors; ++i) sums[i] = _mm512_add_epi32(sums[i], widened(mask, x + kLanes * i));
    }
  }
  for (int i = 0; i < kVectors; ++i) _mm512_mask_storeu_epi32(to + kLanes * i, mask, sums[i]);
}

template <typename T>
void sum(const PoolRun& run, const T* from, int32_t* to) {
  for (int64_t place = 0; place < run.count; ++place, from += run.from_step, to += run.to_step) {
    int64_t channel = 0;
    for (; channel + 4 * kLanes <= run.width; channel += 4 * kLanes) {
      sum_block<4>(run, first(kLanes), from + channel, to + channel);
    }
    for (; channel < run.width; channel += kLanes) {
      sum_block<1>(run, first(run.width - channel), from + channel, to + channel);
    }
  }
}

}  // namespace

extern const PoolingKernels kPoolingAvx512vnni;
const PoolingKernels kPoolingAvx512vnni = {greatest<uint8_t>, greatest<int16_t>, greatest<int32_t>, sum<uint8_t>,
                                           sum<int16_t>};

}  // namespace cvm
