// Rescales of 8 sums at once, for the avx2 files that include this.
#pragma once

#include <immintrin.h>

#include "kernels/scales.h"

namespace cvm {
namespace {

constexpr int kLanes = 8;

inline __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

// What a block of ScaleBlocks holds for 8 channels.
struct Block {
  const int32_t *multiplier, *last;
  const int64_t *half_even, *half_odd, *shift_even, *shift_odd;
};

inline Block block_of(const ScaleBlocks& scale, int64_t number) {
  const uint8_t* data = scale.data + number * scale.stride;
  const int64_t* wide = reinterpret_cast<const int64_t*>(data + 8 * kLanes);
  const int half = kLanes / 2;
  return {reinterpret_cast<const int32_t*>(data), reinterpret_cast<const int32_t*>(data) + kLanes,
          wide, wide + half, wide + 2 * half, wide + 3 * half};
}

// Products of even and odd channels plus their halves.
struct Halves {
  __m256i even, odd;
};

inline Halves multiplied(__m256i x, const Block& block) {
  const __m256i even = _mm256_mul_epi32(x, load(block.multiplier));
  // From one channel on, so that odd multipliers stand where even ones stood; what follows them is not looked at.
  const __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(x, 32), load(block.multiplier + 1));
  return {_mm256_add_epi64(even, load(block.half_even)), _mm256_add_epi64(odd, load(block.half_odd))};
}

// The high halves of both, each in its own channel's place.
inline __m256i high_halves(const Halves& halves) {
  return _mm256_blend_epi32(_mm256_srli_epi64(halves.even, 32), halves.odd, 0xAA);
}

inline __m256i to_stored(__m256i x, const Block& block) {
  return _mm256_srav_epi32(high_halves(multiplied(x, block)), load(block.last));
}

// A block of short bytes.
struct ShortBlock {
  const uint8_t* data;
};

inline __m256i to_stored(__m256i x, const ShortBlock& block) {
  const __m256i product = _mm256_mullo_epi32(x, load(block.data));
  return _mm256_srav_epi32(_mm256_add_epi32(product, load(block.data + 32)), load(block.data + 64));
}

// A block of odd bytes.
struct OddBlock {
  const uint8_t* data;
};

inline __m256i to_stored(__m256i x, const OddBlock& block) {
  return _mm256_srav_epi32(_mm256_mullo_epi32(x, load(block.data)), load(block.data + 32));
}

// A block of halves.
struct HalfBlock {
  const uint8_t* data;
};

// vpmulhuw has the high half of the product of low halves, and 0 for high ones; vpmaddwd the product of high halves.
inline __m256i to_stored(__m256i x, const HalfBlock& block) {
  const __m256i low = _mm256_add_epi32(_mm256_mulhi_epu16(x, load(block.data)), load(block.data + 32));
  return _mm256_srav_epi32(_mm256_add_epi32(low, _mm256_madd_epi16(x, load(block.data + 64))), load(block.data + 96));
}

// The block of a form of bytes.
template <ScaleForm kForm>
inline auto byte_block_of(const ScaleBlocks& scale, int64_t number) {
  const uint8_t* data = scale.data + number * scale.stride;
  if constexpr (kForm == ScaleForm::short_bytes) {
    return ShortBlock{data};
  } else if constexpr (kForm == ScaleForm::odd_bytes) {
    return OddBlock{data};
  } else if constexpr (kForm == ScaleForm::half_bytes) {
    return HalfBlock{data};
  } else {
    return block_of(scale, number);
  }
}

// The block of a form of words, or of integers of 32 bits.
template <ScaleForm kForm>
inline auto word_block_of(const ScaleBlocks& scale, int64_t number) {
  if constexpr (kForm == ScaleForm::half_words) {
    return HalfBlock{scale.data + number * scale.stride};
  } else {
    return block_of(scale, number);
  }
}

template <bool kLeft>
inline __m256i to_integers(__m256i x, const Block& block) {
  Halves halves = multiplied(x, block);
  if constexpr (kLeft) {
    halves.even = _mm256_sllv_epi64(halves.even, load(block.shift_even));
    halves.odd = _mm256_sllv_epi64(halves.odd, load(block.shift_odd));
    return high_halves(halves);
  } else {
    halves.even = _mm256_srlv_epi64(halves.even, load(block.shift_even));
    halves.odd = _mm256_slli_epi64(_mm256_srlv_epi64(halves.odd, load(block.shift_odd)), 32);
    return _mm256_add_epi32(_mm256_blend_epi32(halves.even, halves.odd, 0xAA), load(block.last));
  }
}

inline __m256i bytes_at(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}

inline __m256i shifted(__m256i sums, const ShiftBlocks& scale, int64_t number) {
  return _mm256_sllv_epi32(sums, load(scale.data + number * scale.stride));
}

// Sums and 8 stored bytes by a block of ShiftBlocks.
inline __m256i shifted_sum(__m256i sums, const uint8_t* from, const ShiftBlocks& scale, int64_t number) {
  const uint8_t* block = scale.data + number * scale.stride;
  const __m256i product = _mm256_madd_epi16(bytes_at(from), load(block + 64));
  return _mm256_add_epi32(_mm256_add_epi32(shifted(sums, scale, number), load(block + 32)), product);
}

// 8 stored bytes by a block of ByteBlocks. In 32 bits they are pairs of 16 with a zero, so that vpmaddwd is a plain product.
inline __m256i rescaled_bytes(const uint8_t* from, const ByteBlocks& scale, int64_t number) {
  const __m256i bytes = bytes_at(from);
  const uint8_t* block = scale.data + number * scale.stride;
  const __m256i low = _mm256_add_epi32(_mm256_madd_epi16(bytes, load(block)), load(block + 64));
  const __m256i high = _mm256_add_epi32(_mm256_madd_epi16(bytes, load(block + 32)), load(block + 96));
  return _mm256_srav_epi32(_mm256_add_epi32(high, _mm256_srai_epi32(low, 16)), load(block + 128));
}

inline void store_integers(__m256i x, int64_t count, int32_t* to) {
  if (count >= kLanes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
    return;
  }
  alignas(32) int32_t spare[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(spare), x);
  for (int64_t i = 0; i < count; ++i) to[i] = spare[i];
}

}  // namespace
}  // namespace cvm
