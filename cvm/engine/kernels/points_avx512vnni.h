// Points of lines in registers, for the avx512vnni files that include this.
#pragma once

#include "kernels/avx512.h"

namespace cvm {
namespace {

// Words in pairs of registers, 32 in each: the places' low six bits choose in every pair, then one bit after another the pair.
// A gather would take twice as long.
template <int kRegisters>
struct Points {
  explicit Points(const int16_t* from) {
    for (int i = 0; i < kRegisters; ++i) words[i] = _mm512_loadu_si512(from + 32 * i);
  }

  __m512i at(__m512i places) const {
    __m512i found[kRegisters / 2];
    for (int i = 0; i < kRegisters / 2; ++i) found[i] = _mm512_permutex2var_epi16(words[2 * i], places, words[2 * i + 1]);
    for (int half = kRegisters / 4, bit = 64; half > 0; half /= 2, bit *= 2) {
      const __mmask32 upper = _mm512_test_epi16_mask(places, _mm512_set1_epi16(static_cast<int16_t>(bit)));
      for (int i = 0; i < half; ++i) found[i] = _mm512_mask_blend_epi16(upper, found[2 * i], found[2 * i + 1]);
    }
    return found[0];
  }

  __m512i words[kRegisters];
};

}  // namespace
}  // namespace cvm
