// Points of lines in registers, for the avx512vnni files that include this.
#pragma once

#include "kernels/avx512.h"

namespace cvm {
namespace {

// Words in pairs of registers, 32 in each register. The low six bits of a place choose a word of every pair, then one
// bit after another chooses the pair. A gather would take twice as long.
template <int kRegisters>
struct Points {
  explicit Points(const int16_t* from) {
    for (int i = 0; i < kRegisters; ++i) words[i] = _mm512_loadu_si512(from + 32 * i);
  }

  __m512i at(__m512i places) const {
    __m512i choices[kRegisters / 2];
    for (int i = 0; i < kRegisters / 2; ++i) choices[i] = _mm512_permutex2var_epi16(words[2 * i], places, words[2 * i + 1]);
    for (int half = kRegisters / 4, bit = 64; half > 0; half /= 2, bit *= 2) {
      const __mmask32 upper = _mm512_test_epi16_mask(places, _mm512_set1_epi16(static_cast<int16_t>(bit)));
      for (int i = 0; i < half; ++i) choices[i] = _mm512_mask_blend_epi16(upper, choices[2 * i], choices[2 * i + 1]);
    }
    return choices[0];
  }

  __m512i words[kRegisters];
};

}  // namespace
}  // namespace cvm
