// Finishes tiles of sums with AVX2: 8 columns at a time.
#include "kernels/finish.h"
#include "kernels/scales_avx2.h"

namespace cvm {
namespace {

// 8 elements, or as many as there are and zeros.
template <typename T>
inline const T* whole(const T* from, int64_t count, T (&spare)[kLanes]) {
  if (count >= kLanes) return from;
  for (int64_t i = 0; i < kLanes; ++i) spare[i] = i < count ? from[i] : T{0};
  return spare;
}

inline __m256i integers_at(const int32_t* from, int64_t count) {
  int32_t spare[kLanes];
  return load(whole(from, count, spare));
}

inline __m256i integers_of(__m256i x, const Block& block, bool is_left) {
  return is_left ? to_integers<true>(x, block) : to_integers<false>(x, block);
}

// The shortcut's integers at one place, `count` of them or 8.
template <int kSize>
inline __m256i added_at(const Shortcut& shortcut, int64_t place, int64_t column, int64_t count) {
  if constexpr (kSize == 1) {
    uint8_t spare[kLanes];
    return rescaled_bytes(whole(static_cast<const uint8_t*>(shortcut.data) + place, count, spare), shortcut.bytes, column / kLanes);
  } else if constexpr (kSize == 2) {
    int16_t spare[kLanes];
    const int16_t* from = whole(static_cast<const int16_t*>(shortcut.data) + place, count, spare);
    const __m256i words = _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return integers_of(words, block_of(shortcut.words, column / kLanes), shortcut.words.form == ScaleForm::left);
  } else {
    return integers_at(static_cast<const int32_t*>(shortcut.data) + place, count);
  }
}

template <int kSize>
void add_shortcut_of(const SumTile& tile, const ScaleBlocks& scale, const Shortcut& shortcut) {
  const bool is_left = scale.form == ScaleForm::left;
  for (int64_t column = 0; column < tile.columns; column += kLanes) {
    const Block block = block_of(scale, column / kLanes);
    const int64_t count = tile.columns - column;
    for (int64_t row = 0; row < tile.rows; ++row) {
      int32_t* sums = tile.sums + row * tile.pitch + column;
      const __m256i added = added_at<kSize>(shortcut, row * shortcut.pitch + column, column, count);
      store_integers(_mm256_add_epi32(integers_of(integers_at(sums, count), block, is_left), added), count, sums);
    }
  }
}

// Without multipliers of 31 bits.
template <bool kBytes>
void add_shifted(const SumTile& tile, const Shortcut& shortcut) {
  for (int64_t column = 0; column < tile.columns; column += kLanes) {
    const int64_t count = tile.columns - column, number = column / kLanes;
    for (int64_t row = 0; row < tile.rows; ++row) {
      int32_t* sums = tile.sums + row * tile.pitch + column;
      const int64_t place = row * shortcut.pitch + column;
      __m256i sum = integers_at(sums, count);
      if constexpr (kBytes) {
        uint8_t spare[kLanes];
        const uint8_t* from = whole(static_cast<const uint8_t*>(shortcut.data) + place, count, spare);
        sum = shifted_sum(sum, from, shortcut.shifted, number);
      } else {
        sum = _mm256_add_epi32(shifted(sum, shortcut.shifted, number), added_at<4>(shortcut, place, column, count));
      }
      store_integers(sum, count, sums);
    }
  }
}

void add_shortcut(const SumTile& tile, const ScaleBlocks& scale, const Shortcut& shortcut) {
  if (shortcut.shifted.data != nullptr) {
    return shortcut.size == 1 ? add_shifted<true>(tile, shortcut) : add_shifted<false>(tile, shortcut);
  }
  switch (shortcut.size) {
    case 1: return add_shortcut_of<1>(tile, scale, shortcut);
    case 2: return add_shortcut_of<2>(tile, scale, shortcut);
    default: return add_shortcut_of<4>(tile, scale, shortcut);
  }
}

template <typename T>
inline void store_narrow(__m128i x, int64_t count, T* to) {
  alignas(16) T spare[16 / sizeof(T)];
  _mm_store_si128(reinterpret_cast<__m128i*>(spare), x);
  for (int64_t i = 0; i < kLanes && i < count; ++i) to[i] = spare[i];
}

// Packing saturates nothing: integers are held within the range of their size.
template <int kSize>
inline void store_some(void* to, int64_t place, int64_t count, __m256i x) {
  if constexpr (kSize == 4) return store_integers(x, count, static_cast<int32_t*>(to) + place);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  if constexpr (kSize == 2) {
    int16_t* next = static_cast<int16_t*>(to) + place;
    count >= kLanes ? _mm_storeu_si128(reinterpret_cast<__m128i*>(next), words) : store_narrow(words, count, next);
  } else if constexpr (kSize == 1) {
    uint8_t* next = static_cast<uint8_t*>(to) + place;
    const __m128i bytes = _mm_packus_epi16(words, words);
    count >= kLanes ? _mm_storel_epi64(reinterpret_cast<__m128i*>(next), bytes) : store_narrow(bytes, count, next);
  }
}

template <ScaleForm kForm>
inline __m256i rescaled(__m256i x, const Block& block) {
  if constexpr (kForm == ScaleForm::words) {
    return to_stored(x, block);
  } else {
    return to_integers<kForm == ScaleForm::left>(x, block);
  }
}

template <ScaleForm kForm>
inline __m256i rescaled(__m256i x, const ShortBlock& block) {
  return to_stored(x, block);
}

template <ScaleForm kForm, int kSize>
void store_from(int64_t first, const SumTile& tile, const Finish& finish, void* to, int64_t pitch) {
  const __m256i low = _mm256_set1_epi32(finish.low), high = _mm256_set1_epi32(finish.high), add = _mm256_set1_epi32(finish.add);
  for (int64_t column = first; column < tile.columns; column += kLanes) {
    const auto block = byte_block_of<kForm>(finish.scale, column / kLanes);
    const int64_t count = tile.columns - column;
    for (int64_t row = 0; row < tile.rows; ++row) {
      const __m256i integers = rescaled<kForm>(integers_at(tile.sums + row * tile.pitch + column, count), block);
      const __m256i clamped = _mm256_min_epi32(_mm256_max_epi32(integers, low), high);
      store_some<kSize>(to, row * pitch + column, count, _mm256_add_epi32(clamped, add));
    }
  }
}

// 16 columns of two rows at a time. Packing and adding saturate, which is monotonic, so the limits may wait for bytes.
template <ScaleForm kForm>
int64_t store_bytes(const SumTile& tile, const Finish& finish, uint8_t* to, int64_t pitch) {
  const __m256i add = _mm256_set1_epi16(static_cast<int16_t>(finish.add));
  const __m256i low = _mm256_set1_epi8(static_cast<char>(finish.low + finish.add));
  const __m256i high = _mm256_set1_epi8(static_cast<char>(finish.high + finish.add));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  int64_t column = 0;
  for (; column + 2 * kLanes <= tile.columns; column += 2 * kLanes) {
    const auto left = byte_block_of<kForm>(finish.scale, column / kLanes);
    const auto right = byte_block_of<kForm>(finish.scale, column / kLanes + 1);
    const auto words = [&](int64_t row) {
      const int32_t* sums = tile.sums + row * tile.pitch + column;
      const __m256i both = _mm256_packs_epi32(rescaled<kForm>(load(sums), left), rescaled<kForm>(load(sums + kLanes), right));
      return _mm256_adds_epi16(both, add);
    };
    for (int64_t row = 0; row < tile.rows; row += 2) {
      const bool two = row + 1 < tile.rows;
      const __m256i first = words(row), packed = _mm256_packus_epi16(first, two ? words(row + 1) : first);
      const __m256i bytes = _mm256_min_epu8(_mm256_max_epu8(_mm256_permutevar8x32_epi32(packed, order), low), high);
      uint8_t* next = to + row * pitch + column;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(next), _mm256_castsi256_si128(bytes));
      if (two) _mm_storeu_si128(reinterpret_cast<__m128i*>(next + pitch), _mm256_extracti128_si256(bytes, 1));
    }
  }
  return column;
}

template <ScaleForm kForm, int kSize>
void store_as(const SumTile& tile, const Finish& finish, void* to, int64_t pitch) {
  int64_t first = 0;
  if constexpr (kSize == 1) first = store_bytes<kForm>(tile, finish, static_cast<uint8_t*>(to), pitch);
  store_from<kForm, kSize>(first, tile, finish, to, pitch);
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

extern const FinishKernels kFinishAvx2;
const FinishKernels kFinishAvx2 = {add_shortcut, store};

}  // namespace cvm
