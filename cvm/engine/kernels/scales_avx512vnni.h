// Rescales of 16 sums at once, for the avx512vnni files that include this.
#pragma once

#include "kernels/avx512.h"
#include "kernels/scales.h"

namespace cvm {
namespace {

constexpr int kLanes = 16;

inline __m512i load(const void* from) { return _mm512_loadu_si512(from); }

// What a block of ScaleBlocks holds for 16 channels, in registers: it serves every row of a tile.
struct Block {
  __m512i multiplier, multiplier_odd, last, half_even, half_odd, shift_even, shift_odd;
};

inline Block block_of(const ScaleBlocks& scale, int64_t number) {
  const uint8_t* data = scale.data + number * scale.stride;
  const __m512i multiplier = load(data);
  return {multiplier,       _mm512_srli_epi64(multiplier, 32), load(data + 64),  load(data + 128),
          load(data + 192), load(data + 256),                  load(data + 320)};
}

// Products of even and odd channels plus their halves.
struct Halves {
  __m512i even, odd;
};

inline Halves multiplied(__m512i x, const Block& block) {
  const __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(x, 32), block.multiplier_odd);
  return {_mm512_add_epi64(_mm512_mul_epi32(x, block.multiplier), block.half_even), _mm512_add_epi64(odd, block.half_odd)};
}

// The high halves of both, each in its own channel's place: odd ones stand there, even ones move down.
inline __m512i high_halves(const Halves& halves) {
  return _mm512_mask_shuffle_epi32(halves.odd, 0x5555, halves.even, _MM_PERM_DDBB);
}

inline __m512i to_stored(__m512i x, const Block& block) {
  return _mm512_srav_epi32(high_halves(multiplied(x, block)), block.last);
}

template <bool kLeft>
inline __m512i to_integers(__m512i x, const Block& block) {
  Halves halves = multiplied(x, block);
  if constexpr (kLeft) {
    halves.even = _mm512_sllv_epi64(halves.even, block.shift_even);
    halves.odd = _mm512_sllv_epi64(halves.odd, block.shift_odd);
    return high_halves(halves);
  } else {
    halves.even = _mm512_srlv_epi64(halves.even, block.shift_even);
    halves.odd = _mm512_slli_epi64(_mm512_srlv_epi64(halves.odd, block.shift_odd), 32);
    return _mm512_add_epi32(_mm512_mask_blend_epi32(0xAAAA, halves.even, halves.odd), block.last);
  }
}

// A block of short bytes in registers.
struct ShortBlock {
  __m512i multiplier, constant, shift;
};

inline ShortBlock short_block_of(const ScaleBlocks& scale, int64_t number) {
  const uint8_t* data = scale.data + number * scale.stride;
  return {load(data), load(data + 64), load(data + 128)};
}

inline __m512i to_stored(__m512i x, const ShortBlock& block) {
  return _mm512_srav_epi32(_mm512_add_epi32(_mm512_mullo_epi32(x, block.multiplier), block.constant), block.shift);
}

// A block of odd bytes in registers.
struct OddBlock {
  __m512i multiplier, shift;
};

inline __m512i to_stored(__m512i x, const OddBlock& block) {
  return _mm512_srav_epi32(_mm512_mullo_epi32(x, block.multiplier), block.shift);
}

// A block of halves in registers.
struct HalfBlock {
  __m512i multiplier, constant, factor, shift;
};

inline HalfBlock half_block_of(const ScaleBlocks& scale, int64_t number) {
  const uint8_t* data = scale.data + number * scale.stride;
  return {load(data), load(data + 64), load(data + 128), load(data + 192)};
}

// vpmulhuw has the high half of the product of low halves, and 0 for high ones; vpdpwssd adds the product of high halves.
inline __m512i to_stored(__m512i x, const HalfBlock& block) {
  const __m512i low = _mm512_add_epi32(_mm512_mulhi_epu16(x, block.multiplier), block.constant);
  return _mm512_srav_epi32(_mm512_dpwssd_epi32(low, x, block.factor), block.shift);
}

// The block of a form of bytes.
template <ScaleForm kForm>
inline auto byte_block_of(const ScaleBlocks& scale, int64_t number) {
  if constexpr (kForm == ScaleForm::short_bytes) {
    return short_block_of(scale, number);
  } else if constexpr (kForm == ScaleForm::odd_bytes) {
    const uint8_t* data = scale.data + number * scale.stride;
    return OddBlock{load(data), load(data + 64)};
  } else if constexpr (kForm == ScaleForm::half_bytes) {
    return half_block_of(scale, number);
  } else {
    return block_of(scale, number);
  }
}

// The block of a form of words, or of integers of 32 bits.
template <ScaleForm kForm>
inline auto word_block_of(const ScaleBlocks& scale, int64_t number) {
  if constexpr (kForm == ScaleForm::half_words) {
    return half_block_of(scale, number);
  } else {
    return block_of(scale, number);
  }
}

inline __mmask16 mask_of(int64_t columns) {
  return columns >= kLanes ? 0xFFFF : static_cast<__mmask16>((1u << columns) - 1);
}

// A block of ByteBlocks in registers.
struct ByteFactors {
  __m512i low, high, low_add, high_add, shift;
};

inline ByteFactors factors_of(const ByteBlocks& blocks, int64_t number) {
  const uint8_t* data = blocks.data + number * blocks.stride;
  return {load(data), load(data + 64), load(data + 128), load(data + 192), load(data + 256)};
}

// A block of ShiftBlocks in registers.
struct ShiftFactors {
  __m512i shift, constant, factor;
};

inline ShiftFactors shift_factors_of(const ShiftBlocks& blocks, int64_t number) {
  const uint8_t* data = blocks.data + number * blocks.stride;
  return {load(data), load(data + 64), load(data + 128)};
}

inline __m512i bytes_at(const uint8_t* from, __mmask16 mask) {
  return _mm512_cvtepu8_epi32(mask == 0xFFFF ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)) : _mm_maskz_loadu_epi8(mask, from));
}

inline __m512i shifted(__m512i sums, const ShiftFactors& factors) { return _mm512_sllv_epi32(sums, factors.shift); }

// Sums and stored bytes in 32 bits, which are pairs of 16 with a zero, so that vpdpwssd is a plain product and a sum.
// Short bytes have the constant among their own.
template <bool kShort>
inline __m512i shifted_sum(__m512i sums, __m512i bytes, const ShiftFactors& factors) {
  const __m512i sum = shifted(sums, factors);
  return _mm512_dpwssd_epi32(kShort ? sum : _mm512_add_epi32(sum, factors.constant), bytes, factors.factor);
}

// Bytes in 32 bits are pairs of 16 with a zero, so that vpdpwssd is a plain product and a sum.
inline __m512i shortcut_bytes(const uint8_t* from, const ByteFactors& factors, __mmask16 mask) {
  const __m512i bytes = bytes_at(from, mask);
  const __m512i low = _mm512_srai_epi32(_mm512_dpwssd_epi32(factors.low_add, bytes, factors.low), 16);
  const __m512i high = _mm512_dpwssd_epi32(factors.high_add, bytes, factors.high);
  return _mm512_srav_epi32(_mm512_add_epi32(high, low), factors.shift);
}

}  // namespace
}  // namespace cvm
