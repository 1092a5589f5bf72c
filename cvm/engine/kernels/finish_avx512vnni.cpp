// Finishes tiles of sums with AVX-512: 16 columns at a time, whose constants stay in registers for all rows.
#include "kernels/finish.h"
#include "kernels/scales_avx512vnni.h"

namespace cvm {
namespace {

// Calls body(column, mask of the columns that are there) for every 16 columns.
template <typename Body>
void for_columns(const SumTile& tile, Body body) {
  for (int64_t column = 0; column < tile.columns; column += kLanes) body(column, mask_of(tile.columns - column));
}

template <bool kLeft, int kSize>
void add_shortcut_of(const SumTile& tile, const ScaleBlocks& scale, const Shortcut& shortcut) {
  for_columns(tile, [&](int64_t column, __mmask16 mask) {
    const Block block = block_of(scale, column / kLanes);
    ByteFactors factors{};
    if constexpr (kSize == 1) factors = factors_of(shortcut.bytes, column / kLanes);
    Block shortcut_block{};
    if constexpr (kSize == 2) shortcut_block = block_of(shortcut.words, column / kLanes);
    const bool shortcut_left = shortcut.words.form == ScaleForm::left;
    const uint8_t* from = static_cast<const uint8_t*>(shortcut.data) + column * kSize;
    for (int64_t row = 0; row < tile.rows; ++row, from += shortcut.pitch * kSize) {
      int32_t* sums = tile.sums + row * tile.pitch + column;
      __m512i added;
      if constexpr (kSize == 1) {
        added = shortcut_bytes(from, factors, mask);
      } else if constexpr (kSize == 2) {
        const __m512i words = _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(mask, from));
        added = shortcut_left ? to_integers<true>(words, shortcut_block) : to_integers<false>(words, shortcut_block);
      } else {
        added = _mm512_maskz_loadu_epi32(mask, from);
      }
      const __m512i rescaled = to_integers<kLeft>(_mm512_maskz_loadu_epi32(mask, sums), block);
      _mm512_mask_storeu_epi32(sums, mask, _mm512_add_epi32(rescaled, added));
    }
  });
}

template <bool kLeft>
void add_any(const SumTile& tile, const ScaleBlocks& scale, const Shortcut& shortcut) {
  switch (shortcut.size) {
    case 1: return add_shortcut_of<kLeft, 1>(tile, scale, shortcut);
    case 2: return add_shortcut_of<kLeft, 2>(tile, scale, shortcut);
    default: return add_shortcut_of<kLeft, 4>(tile, scale, shortcut);
  }
}

// Without multipliers of 31 bits.
template <bool kBytes>
void add_shifted(const SumTile& tile, const Shortcut& shortcut) {
  for_columns(tile, [&](int64_t column, __mmask16 mask) {
    const ShiftFactors factors = shift_factors_of(shortcut.shifted, column / kLanes);
    for (int64_t row = 0; row < tile.rows; ++row) {
      int32_t* sums = tile.sums + row * tile.pitch + column;
      const int64_t place = row * shortcut.pitch + column;
      __m512i sum = _mm512_maskz_loadu_epi32(mask, sums);
      if constexpr (kBytes) {
        sum = shifted_sum<false>(sum, bytes_at(static_cast<const uint8_t*>(shortcut.data) + place, mask), factors);
      } else {
        const __m512i added = _mm512_maskz_loadu_epi32(mask, static_cast<const int32_t*>(shortcut.data) + place);
        sum = _mm512_add_epi32(shifted(sum, factors), added);
      }
      _mm512_mask_storeu_epi32(sums, mask, sum);
    }
  });
}

void add_shortcut(const SumTile& tile, const ScaleBlocks& scale, const Shortcut& shortcut) {
  if (shortcut.shifted.data != nullptr) {
    return shortcut.size == 1 ? add_shifted<true>(tile, shortcut) : add_shifted<false>(tile, shortcut);
  }
  scale.form == ScaleForm::left ? add_any<true>(tile, scale, shortcut) : add_any<false>(tile, scale, shortcut);
}

template <ScaleForm kForm>
inline __m512i rescaled(__m512i x, const Block& block) {
  if constexpr (kForm == ScaleForm::words) {
    return to_stored(x, block);
  } else {
    return to_integers<kForm == ScaleForm::left>(x, block);
  }
}

template <ScaleForm kForm>
inline __m512i rescaled(__m512i x, const ShortBlock& block) {
  return to_stored(x, block);
}

template <int kSize>
inline void store_some(void* to, int64_t place, __mmask16 mask, __m512i x) {
  if constexpr (kSize == 1) {
    _mm_mask_storeu_epi8(static_cast<uint8_t*>(to) + place, mask, _mm512_cvtepi32_epi8(x));
  } else if constexpr (kSize == 2) {
    _mm256_mask_storeu_epi16(static_cast<int16_t*>(to) + place, mask, _mm512_cvtepi32_epi16(x));
  } else {
    _mm512_mask_storeu_epi32(static_cast<int32_t*>(to) + place, mask, x);
  }
}

// Four rows of 16 columns at a time; gives how many rows are done. Packing and adding saturate, which is monotonic, so the limits
// may wait for bytes.
template <ScaleForm kForm, typename Block>
int64_t store_fours(const SumTile& tile, const Finish& finish, const Block block, int64_t column, uint8_t* to, int64_t pitch) {
  const __m512i add = _mm512_set1_epi16(static_cast<int16_t>(finish.add));
  const __m512i low = _mm512_set1_epi8(static_cast<char>(finish.low + finish.add));
  const __m512i high = _mm512_set1_epi8(static_cast<char>(finish.high + finish.add));
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const auto words = [&](const int32_t* sums) {
    const __m512i first = rescaled<kForm>(load(sums), block), second = rescaled<kForm>(load(sums + tile.pitch), block);
    return _mm512_adds_epi16(_mm512_packs_epi32(first, second), add);
  };
  int64_t row = 0;
  for (; row + 4 <= tile.rows; row += 4) {
    const int32_t* sums = tile.sums + row * tile.pitch + column;
    const __m512i packed = _mm512_packus_epi16(words(sums), words(sums + 2 * tile.pitch));
    const __m512i bytes = _mm512_min_epu8(_mm512_max_epu8(_mm512_permutexvar_epi32(order, packed), low), high);
    uint8_t* next = to + row * pitch + column;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(next), _mm512_castsi512_si128(bytes));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(next + pitch), _mm512_extracti32x4_epi32(bytes, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(next + 2 * pitch), _mm512_extracti32x4_epi32(bytes, 2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(next + 3 * pitch), _mm512_extracti32x4_epi32(bytes, 3));
  }
  return row;
}

template <ScaleForm kForm, int kSize>
void store_as(const SumTile& tile, const Finish& finish, void* to, int64_t pitch) {
  const __m512i low = _mm512_set1_epi32(finish.low), high = _mm512_set1_epi32(finish.high), add = _mm512_set1_epi32(finish.add);
  for_columns(tile, [&](int64_t column, __mmask16 mask) {
    const auto block = byte_block_of<kForm>(finish.scale, column / kLanes);
    int64_t row = 0;
    if constexpr (kSize == 1) {
      if (mask == 0xFFFF) row = store_fours<kForm>(tile, finish, block, column, static_cast<uint8_t*>(to), pitch);
    }
    const int32_t* sums = tile.sums + row * tile.pitch + column;
    for (; row < tile.rows; ++row, sums += tile.pitch) {
      const __m512i integers = rescaled<kForm>(_mm512_maskz_loadu_epi32(mask, sums), block);
      const __m512i clamped = _mm512_min_epi32(_mm512_max_epi32(integers, low), high);
      store_some<kSize>(to, row * pitch + column, mask, _mm512_add_epi32(clamped, add));
    }
  });
}

template <ScaleForm kForm>
void store_form(const SumTile& tile, const Finish& finish, void* to, int64_t pitch) {
  switch (finish.size) {
    case 1: return store_as<kForm, 1>(tile, finish, to, pitch);
    case 2: return store_as<kForm, 2>(tile, finish, to, pitch);
    default: return store_as<kForm, 4>(tile, finish, to, pitch);
  }
}

void store(const SumTile& tile, const Finish& finish, void* to, int64_t pitch) {
  switch (finish.scale.form) {
    case ScaleForm::short_bytes: return store_as<ScaleForm::short_bytes, 1>(tile, finish, to, pitch);
    case ScaleForm::bytes:
    case ScaleForm::words: return store_form<ScaleForm::words>(tile, finish, to, pitch);
    case ScaleForm::left: return store_form<ScaleForm::left>(tile, finish, to, pitch);
    default: return store_form<ScaleForm::integers>(tile, finish, to, pitch);
  }
}

}  // namespace

extern const FinishKernels kFinishAvx512vnni;
const FinishKernels kFinishAvx512vnni = {add_shortcut, store};

}  // namespace cvm
