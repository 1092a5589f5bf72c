// Depthwise sums with vpmaddwd: two taps of 8 channels at once, exactly.
#include <immintrin.h>

#include "kernels/depthwise.h"

namespace cvm {
namespace {

constexpr int kLanes = 8;
constexpr int kGroup = static_cast<int>(kPixelGroup);

// The two upper rows of a square in vertical pairs, then the lower row's first two taps, then its last one.
constexpr int8_t kSquare[] = {0, 3, 1, 4, 2, 5, 6, 7, -1, 8};

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

__m256i add_product(__m256i sum, __m256i x, __m256i w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w)); }

// 8 channels of one tap, not yet widened. `count`: how many may be read.
struct Bytes {
  static __m128i at(const void* pixel, int64_t channel, int64_t) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(pixel) + channel));
  }
  // Each channel's two taps as neighbouring 16-bit integers.
  static __m256i pair(__m128i a, __m128i b) { return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)); }
};

struct Words {
  static __m128i at(const void* pixel, int64_t channel, int64_t count) {
    const int16_t* from = static_cast<const int16_t*>(pixel) + channel;
    if (count >= kLanes) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    alignas(16) int16_t spare[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) spare[i] = from[i];
    return _mm_load_si128(reinterpret_cast<const __m128i*>(spare));
  }
  static __m256i pair(__m128i a, __m128i b) {
    return _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
  }
};

// Any taps, each through its own pointer. finish(sums of kGroup pixels, first of them) gets every group in turn.
template <typename X, typename Finish>
inline void general(const DepthwiseTask& task, int64_t columns, const Finish& finish) {
  for (int64_t first = 0; first < task.count; first += kGroup) {
    const void* const* slots = task.pixels + first * task.slots;
    const int16_t* weights = static_cast<const int16_t*>(task.weights);
    __m256i sums[kGroup] = {};
    for (int64_t slot = 0; slot < task.slots; slot += 2, weights += 2 * kLanes) {
      const __m256i w = load(weights);
      for (int i = 0; i < kGroup; ++i) {
        const void* const* at = slots + i * task.slots + slot;
        sums[i] = add_product(sums[i], X::pair(X::at(at[0], task.channel, columns), X::at(at[1], task.channel, columns)), w);
      }
    }
    finish(sums, first);
  }
}

// The input pixels of a square, column by column.
struct Square {
  const void* const* pixels;
  int64_t columns;
  int64_t channel;

  __m256i upper(int64_t column) const {
    return Bytes::pair(Bytes::at(pixels[column], channel, kLanes), Bytes::at(pixels[columns + column], channel, kLanes));
  }
  __m128i lower(int64_t column) const { return Bytes::at(pixels[2 * columns + column], channel, kLanes); }
};

// Every column is widened once and serves the three output pixels that see it.
template <typename Finish>
inline void square_of_stride_1(const DepthwiseTask& task, const Finish& finish) {
  const int16_t* weights = static_cast<const int16_t*>(task.weights);
  const __m256i left = load(weights), middle = load(weights + 16), right = load(weights + 32);
  const __m256i lower = load(weights + 48), last = load(weights + 64);
  const Square x{task.pixels, task.columns, task.channel};
  __m128i before = x.lower(1);
  const __m256i second = x.upper(1);
  __m256i current = add_product(_mm256_madd_epi16(x.upper(0), left), second, middle);
  current = add_product(current, Bytes::pair(x.lower(0), before), lower);
  __m256i next = _mm256_madd_epi16(second, left);
  for (int64_t first = 0; first < task.count; first += kGroup) {
    __m256i sums[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      const __m256i upper = x.upper(first + i + 2);
      const __m128i below = x.lower(first + i + 2);
      const __m256i pair = Bytes::pair(before, below);
      sums[i] = add_product(add_product(current, upper, right), pair, last);
      current = add_product(add_product(next, upper, middle), pair, lower);
      next = _mm256_madd_epi16(upper, left);
      before = below;
    }
    finish(sums, first);
  }
}

// Only the outermost columns are shared by two output pixels.
template <typename Finish>
inline void square_of_stride_2(const DepthwiseTask& task, const Finish& finish) {
  const int16_t* weights = static_cast<const int16_t*>(task.weights);
  const __m256i left = load(weights), middle = load(weights + 16), right = load(weights + 32);
  const __m256i lower = load(weights + 48), last = _mm256_srli_epi32(load(weights + 64), 16);  // (8, none)
  const Square x{task.pixels, task.columns, task.channel};
  __m256i current = _mm256_madd_epi16(x.upper(0), left);
  current = add_product(current, Bytes::pair(x.lower(0), x.lower(1)), lower);
  for (int64_t first = 0; first < task.count; first += kGroup) {
    __m256i sums[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      const int64_t column = 2 * (first + i);
      const __m256i upper = x.upper(column + 2);
      const __m256i pair = Bytes::pair(x.lower(column + 2), x.lower(column + 3));
      sums[i] = add_product(add_product(current, x.upper(column + 1), middle), upper, right);
      sums[i] = add_product(sums[i], pair, last);
      current = add_product(_mm256_madd_epi16(upper, left), pair, lower);
    }
    finish(sums, first);
  }
}

template <typename Finish>
inline void for_groups(const DepthwiseTask& task, const Finish& finish) {
  if (task.stride == 1) return square_of_stride_1(task, finish);
  if (task.stride == 2) return square_of_stride_2(task, finish);
  general<Bytes>(task, kLanes, finish);
}

// Writes sums as they are.
struct ToSums {
  __m256i bias;
  int64_t count, columns;
  int32_t* to;
  int64_t pitch;

  void operator()(const __m256i (&sums)[kGroup], int64_t first) const {
    for (int i = 0; i < kGroup && first + i < count; ++i) {
      const __m256i sum = _mm256_add_epi32(sums[i], bias);
      int32_t* row = to + (first + i) * pitch;
      if (columns == kLanes) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), sum);
        continue;
      }
      alignas(32) int32_t spare[kLanes];
      _mm256_store_si256(reinterpret_cast<__m256i*>(spare), sum);
      for (int64_t lane = 0; lane < columns; ++lane) row[lane] = spare[lane];
    }
  }
};

// In either half the high halves of a's two products, then of b's.
__m256i high_halves(__m256i a, __m256i b) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xDD));
}

// Rescales and writes bytes. A shift by at least 32 needs only the high halves of the products.
class ToBytesOf {
 public:
  ToBytesOf(const DepthwiseScale& scale, int64_t count, int64_t columns, uint8_t* to, int64_t pitch)
      : even_multiplier_(load(scale.multiplier)),
        odd_multiplier_(_mm256_srli_epi64(even_multiplier_, 32)),
        even_offset_(load(scale.even_offset)),
        odd_offset_(load(scale.odd_offset)),
        even_shift_(_mm256_shuffle_epi32(load(scale.shift), 0x88)),  // in the order of high_halves: 0 2 0 2, 1 3 1 3
        odd_shift_(_mm256_shuffle_epi32(load(scale.shift), 0xDD)),
        zero_point_(_mm256_set1_epi16(scale.zero_point)),
        low_(_mm256_set1_epi8(static_cast<char>(scale.low))),
        high_(_mm256_set1_epi8(static_cast<char>(scale.high))),
        count_(count),
        columns_(columns),
        to_(to),
        pitch_(pitch) {}

  void operator()(const __m256i (&sums)[kGroup], int64_t first) const {
    const __m256i packed = _mm256_packus_epi16(words(sums[0], sums[1]), words(sums[2], sums[3]));
    const __m256i held = _mm256_min_epu8(_mm256_max_epu8(packed, low_), high_);
    const __m256i order = _mm256_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15,  //
                                           0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    const __m256i halves = _mm256_shuffle_epi8(held, order);  // 4 channels of each pixel in either half
    store(_mm256_permutevar8x32_epi32(halves, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)), first);
  }

 private:
  __m256i even(__m256i sums) const { return _mm256_add_epi64(_mm256_mul_epi32(sums, even_multiplier_), even_offset_); }
  __m256i odd(__m256i sums) const {
    return _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(sums, 32), odd_multiplier_), odd_offset_);
  }
  // In each half: channels 0, 2 of a, 0, 2 of b, 1, 3 of a, 1, 3 of b. Saturating to 16 bits first changes no byte.
  __m256i words(__m256i a, __m256i b) const {
    const __m256i evens = _mm256_srav_epi32(high_halves(even(a), even(b)), even_shift_);
    const __m256i odds = _mm256_srav_epi32(high_halves(odd(a), odd(b)), odd_shift_);
    return _mm256_adds_epi16(_mm256_packs_epi32(evens, odds), zero_point_);
  }
  void store(__m256i pixels, int64_t first) const {
    uint8_t* row = to_ + first * pitch_;
    if (columns_ == kLanes && first + kGroup <= count_) {
      const __m128i a = _mm256_castsi256_si128(pixels), b = _mm256_extracti128_si256(pixels, 1);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(row), a);
      _mm_storeh_pd(reinterpret_cast<double*>(row + pitch_), _mm_castsi128_pd(a));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(row + 2 * pitch_), b);
      _mm_storeh_pd(reinterpret_cast<double*>(row + 3 * pitch_), _mm_castsi128_pd(b));
      return;
    }
    alignas(32) uint8_t spare[kGroup * kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(spare), pixels);
    for (int i = 0; i < kGroup && first + i < count_; ++i) {
      for (int64_t lane = 0; lane < columns_; ++lane) row[i * pitch_ + lane] = spare[i * kLanes + lane];
    }
  }

  __m256i even_multiplier_, odd_multiplier_, even_offset_, odd_offset_, even_shift_, odd_shift_, zero_point_, low_, high_;
  int64_t count_, columns_;
  uint8_t* to_;
  int64_t pitch_;
};

void sums8(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  for_groups(task, ToSums{load(bias), task.count, columns, to, pitch});
}

void sums16(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  general<Words>(task, columns, ToSums{load(bias), task.count, columns, to, pitch});
}

void bytes8(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  for_groups(task, ToBytesOf(scale, task.count, columns, to, pitch));
}

}  // namespace

extern const DepthwiseKernels kDepthwiseAvx2;
const DepthwiseKernels kDepthwiseAvx2 = {kLanes, 2, 2, true, kSquare, sizeof kSquare, sums8, sums16, bytes8};

}  // namespace cvm
