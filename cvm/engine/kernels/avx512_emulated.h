// AVX-512 through SIMDe's headers, and the intrinsics that our kernels use and SIMDe 0.7 lacks, lane by lane. For tests on
// processors without AVX-512: right, not fast.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <stdint.h>
#include <string.h>

namespace {
namespace emulated {

template <typename Lane, int kCount>
struct Lanes {
  Lane lane[kCount];
};

template <typename To, typename From>
inline To as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// Lane i of the result is the cast of lane i.
template <typename To, typename Out, typename In, int kCount, typename Vector>
inline To convert(const Vector& x) {
  const auto from = as<Lanes<In, kCount>>(x);
  Lanes<Out, kCount> to;
  for (int i = 0; i < kCount; ++i) to.lane[i] = static_cast<Out>(from.lane[i]);
  return as<To>(to);
}

// Memory is touched only where the mask has a bit; elsewhere loads give zero.
template <typename Vector, typename Lane, typename Mask>
inline Vector load(Mask mask, const void* from) {
  constexpr int kCount = static_cast<int>(sizeof(Vector) / sizeof(Lane));
  Lanes<Lane, kCount> to{};
  for (int i = 0; i < kCount; ++i) {
    if ((mask >> i) & 1) memcpy(&to.lane[i], static_cast<const Lane*>(from) + i, sizeof(Lane));
  }
  return as<Vector>(to);
}

template <typename Lane, typename Mask, typename Vector>
inline void store(void* to, Mask mask, const Vector& x) {
  constexpr int kCount = static_cast<int>(sizeof(Vector) / sizeof(Lane));
  const auto from = as<Lanes<Lane, kCount>>(x);
  for (int i = 0; i < kCount; ++i) {
    if ((mask >> i) & 1) memcpy(static_cast<Lane*>(to) + i, &from.lane[i], sizeof(Lane));
  }
}

inline simde__m512i shift_right_64(const simde__m512i& x, const simde__m512i& count) {
  auto from = as<Lanes<int64_t, 8>>(x);
  const auto by = as<Lanes<uint64_t, 8>>(count);
  for (int i = 0; i < 8; ++i) from.lane[i] >>= by.lane[i] > 63 ? 63 : by.lane[i];
  return as<simde__m512i>(from);
}

// Lane i comes from `scale` bytes times index i behind the address.
inline simde__m512i gather(const simde__m512i& index, const void* from, int scale) {
  Lanes<int32_t, 16> to;
  const auto places = as<Lanes<int32_t, 16>>(index);
  for (int i = 0; i < 16; ++i) memcpy(&to.lane[i], static_cast<const uint8_t*>(from) + int64_t{places.lane[i]} * scale, 4);
  return as<simde__m512i>(to);
}

inline int32_t reduce_or(const simde__m512i& x) {
  int32_t bits = 0;
  for (int32_t lane : as<Lanes<int32_t, 16>>(x).lane) bits |= lane;
  return bits;
}

inline uint32_t equal_16(const simde__m512i& x, const simde__m512i& y) {
  const auto a = as<Lanes<int16_t, 32>>(x), b = as<Lanes<int16_t, 32>>(y);
  uint32_t mask = 0;
  for (int i = 0; i < 32; ++i) mask |= static_cast<uint32_t>(a.lane[i] == b.lane[i]) << i;
  return mask;
}

inline simde__m512i shift_right_32(const simde__m512i& x, const simde__m512i& count) {
  auto from = as<Lanes<int32_t, 16>>(x);
  const auto by = as<Lanes<uint32_t, 16>>(count);
  for (int i = 0; i < 16; ++i) from.lane[i] >>= by.lane[i] > 31 ? 31 : by.lane[i];
  return as<simde__m512i>(from);
}

}  // namespace emulated
}  // namespace

#if !defined(_mm512_srav_epi64)
#define _mm512_srav_epi64(x, count) emulated::shift_right_64(x, count)
#endif
#if !defined(_mm512_srav_epi32)
#define _mm512_srav_epi32(x, count) emulated::shift_right_32(x, count)
#endif
#if !defined(_mm512_cvtepu8_epi32)
#define _mm512_cvtepu8_epi32(x) (emulated::convert<simde__m512i, int32_t, uint8_t, 16>(x))
#endif
#if !defined(_mm512_cvtepi8_epi32)
#define _mm512_cvtepi8_epi32(x) (emulated::convert<simde__m512i, int32_t, int8_t, 16>(x))
#endif
#if !defined(_mm512_cmpeq_epi16_mask)
#define _mm512_cmpeq_epi16_mask(x, y) emulated::equal_16(x, y)
#endif
#if !defined(_mm512_cvtepu16_epi32)
#define _mm512_cvtepu16_epi32(x) (emulated::convert<simde__m512i, int32_t, uint16_t, 16>(x))
#endif
#if !defined(_mm512_cvtepi16_epi32)
#define _mm512_cvtepi16_epi32(x) (emulated::convert<simde__m512i, int32_t, int16_t, 16>(x))
#endif
#if !defined(_mm512_cvtepi32_epi8)
#define _mm512_cvtepi32_epi8(x) (emulated::convert<simde__m128i, uint8_t, int32_t, 16>(x))
#endif
#if !defined(_mm512_cvtepi32_epi16)
#define _mm512_cvtepi32_epi16(x) (emulated::convert<simde__m256i, uint16_t, int32_t, 16>(x))
#endif
#if !defined(_mm512_maskz_loadu_epi32)
#define _mm512_maskz_loadu_epi32(mask, from) (emulated::load<simde__m512i, int32_t>(mask, from))
#endif
#if !defined(_mm512_maskz_loadu_epi64)
#define _mm512_maskz_loadu_epi64(mask, from) (emulated::load<simde__m512i, int64_t>(mask, from))
#endif
#if !defined(_mm512_maskz_loadu_epi8)
#define _mm512_maskz_loadu_epi8(mask, from) (emulated::load<simde__m512i, uint8_t>(mask, from))
#endif
#if !defined(_mm_maskz_loadu_epi8)
#define _mm_maskz_loadu_epi8(mask, from) (emulated::load<simde__m128i, uint8_t>(mask, from))
#endif
#if !defined(_mm512_cvtepu8_epi16)
#define _mm512_cvtepu8_epi16(x) (emulated::convert<simde__m512i, uint16_t, uint8_t, 32>(x))
#endif
#if !defined(_mm256_maskz_loadu_epi8)
#define _mm256_maskz_loadu_epi8(mask, from) (emulated::load<simde__m256i, uint8_t>(mask, from))
#endif
#if !defined(_mm256_maskz_loadu_epi16)
#define _mm256_maskz_loadu_epi16(mask, from) (emulated::load<simde__m256i, int16_t>(mask, from))
#endif
#if !defined(_mm512_mask_storeu_epi32)
#define _mm512_mask_storeu_epi32(to, mask, x) emulated::store<int32_t>(to, mask, x)
#endif
#if !defined(_mm512_mask_storeu_epi16)
#define _mm512_mask_storeu_epi16(to, mask, x) emulated::store<int16_t>(to, mask, x)
#endif
#if !defined(_mm512_mask_storeu_epi8)
#define _mm512_mask_storeu_epi8(to, mask, x) emulated::store<uint8_t>(to, mask, x)
#endif
#if !defined(_mm_mask_storeu_epi8)
#define _mm_mask_storeu_epi8(to, mask, x) emulated::store<uint8_t>(to, mask, x)
#endif
#if !defined(_mm256_mask_storeu_epi8)
#define _mm256_mask_storeu_epi8(to, mask, x) emulated::store<uint8_t>(to, mask, x)
#endif
#if !defined(_mm256_mask_storeu_epi16)
#define _mm256_mask_storeu_epi16(to, mask, x) emulated::store<int16_t>(to, mask, x)
#endif
#if !defined(_mm512_mask_shuffle_epi32)  // the one selection that kernels use: the odd neighbour of each pair
#define _MM_PERM_DDBB 0xF5
#define _mm512_mask_shuffle_epi32(rest, mask, x, selection) \
  _mm512_mask_blend_epi32(mask, rest, _mm512_srli_epi64(x, 32 + 0 * (selection)))
#endif
#if !defined(_mm512_mask_sub_epi16)
#define _mm512_mask_sub_epi16(rest, mask, x, y) _mm512_mask_blend_epi16(mask, rest, _mm512_sub_epi16(x, y))
#endif
#if !defined(_mm512_srai_epi32)
#define _mm512_srai_epi32(x, count) _mm512_srav_epi32(x, _mm512_set1_epi32(count))
#endif
#if !defined(_mm512_i32gather_epi32)
#define _mm512_i32gather_epi32(index, from, scale) emulated::gather(index, from, scale)
#endif
#if !defined(_mm512_reduce_or_epi32)
#define _mm512_reduce_or_epi32(x) emulated::reduce_or(x)
#endif
