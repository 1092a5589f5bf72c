// Depthwise sums with vpmaddwd: two taps of 8 channels at once, exactly.
#include <immintrin.h>

#include "kernels/depthwise.h"

namespace cvm {
namespace {

constexpr int kLanes = 16;
constexpr int kGroup = static_cast<int>(kPixelGroup);
constexpr int64_t kStrip = 16;  // output pixels whose sums wait until they are finished

// Even channels, then odd ones: two bytes of one row and two of another in 32 bits are split by a mask and a shift.
constexpr int8_t kOrder[] = {0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15};

// The two upper rows of a square in vertical pairs, then the lower row's first two taps, then its last one.
constexpr int8_t kSquare[] = {0, 3, 1, 4, 2, 5, 6, 7, -1, 8};

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

// One 32-bit integer for each channel of a block, in the order above; or two taps of each channel, as 16-bit integers.
struct Lanes {
  __m256i even, odd;
};

// Weights of two taps.
Lanes weights_at(const int16_t* from) { return {load(from), load(from + kLanes)}; }

Lanes product(Lanes x, Lanes w) { return {_mm256_madd_epi16(x.even, w.even), _mm256_madd_epi16(x.odd, w.odd)}; }

Lanes add(Lanes a, Lanes b) { return {_mm256_add_epi32(a.even, b.even), _mm256_add_epi32(a.odd, b.odd)}; }

Lanes add_product(Lanes sum, Lanes x, Lanes w) { return add(sum, product(x, w)); }

// The channels of one tap, not yet widened. `count`: how many may be read.
struct Bytes {
  // 8 channels in the lower half of each half.
  static __m256i at(const void* pixel, int64_t channel, int64_t) {
    const auto* from = reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(pixel) + channel);
    const auto* upper = reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(pixel) + channel + 8);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(from)), _mm_loadu_si128(upper), 1);
  }
  static Lanes pair(__m256i a, __m256i b) {
    const __m256i both = _mm256_unpacklo_epi16(a, b);  // two channels of a, the same two of b, and so on
    return {_mm256_and_si256(both, _mm256_set1_epi16(0xFF)), _mm256_srli_epi16(both, 8)};
  }
};

struct Words {
  static __m256i at(const void* pixel, int64_t channel, int64_t count) {
    const int16_t* from = static_cast<const int16_t*>(pixel) + channel;
    return count >= kLanes ? load(from) : some(from, count);
  }
  // Pairs by a mask, then the odd one.
  static __m256i some(const int16_t* from, int64_t count) {
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), pairs = _mm256_set1_epi32(static_cast<int>(count / 2));
    const __m256i whole = _mm256_maskload_epi32(reinterpret_cast<const int*>(from), _mm256_cmpgt_epi32(pairs, places));
    const int16_t last = count % 2 == 1 ? from[count - 1] : int16_t{0};
    return _mm256_or_si256(whole, _mm256_and_si256(_mm256_cmpeq_epi32(places, pairs), _mm256_set1_epi32(static_cast<uint16_t>(last))));
  }
  static Lanes pair(__m256i a, __m256i b) {
    return {_mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xAA),
            _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xAA)};
  }
};

// Any taps, each through its own pointer. finish(sums, first, some) gets those of some pixels after the other: an even number, so
// that the last may be one too many.
template <typename X, typename Finish>
inline void general(const DepthwiseTask& task, int64_t columns, const Finish& finish) {
  for (int64_t first = 0; first < task.count; first += kGroup) {
    const void* const* slots = task.pixels + first * task.slots;
    const int16_t* weights = static_cast<const int16_t*>(task.weights);
    Lanes sums[kGroup] = {};
    for (int64_t slot = 0; slot < task.slots; slot += 2, weights += 2 * kLanes) {
      const Lanes w = weights_at(weights);
      for (int i = 0; i < kGroup; ++i) {
        const void* const* at = slots + i * task.slots + slot;
        sums[i] =
            add_product(sums[i], X::pair(X::at(at[0], task.channel, columns), X::at(at[1], task.channel, columns)), w);
      }
    }
    finish(sums, first, kGroup);
  }
}

// Takes sum_of(pixel) of one output pixel after the other, and finishes them strip by strip: the weights and what the finish
// multiplies by are more than there are registers.
template <typename SumOf, typename Finish>
inline void by_strips(int64_t count, const SumOf& sum_of, const Finish& finish) {
  Lanes sums[kStrip];
  for (int64_t first = 0; first < count; first += kStrip) {
    const int64_t left = (count - first + 1) / 2 * 2, some = left < kStrip ? left : kStrip;
    for (int64_t i = 0; i < some; ++i) sums[i] = sum_of(first + i);
    finish(sums, first, some);
  }
}

// The input pixels of a square, column by column. `count`: how many channels may be read.
template <typename X>
struct Square {
  const void* const* pixels;
  int64_t columns;
  int64_t channel;
  int64_t count;

  __m256i at(int64_t place) const { return X::at(pixels[place], channel, count); }
  Lanes upper(int64_t column) const { return X::pair(at(column), at(columns + column)); }
  __m256i lower(int64_t column) const { return at(2 * columns + column); }
};

// Every column is widened once and serves the three output pixels that see it.
template <typename X, typename Finish>
inline void square_of_stride_1(const DepthwiseTask& task, int64_t count, const Finish& finish) {
  const int16_t* weights = static_cast<const int16_t*>(task.weights);
  const Lanes left = weights_at(weights), middle = weights_at(weights + 32), right = weights_at(weights + 64);
  const Lanes lower = weights_at(weights + 96), last = weights_at(weights + 128);
  const Square<X> x{task.pixels, task.columns, task.channel, count};
  __m256i before = x.lower(1);
  const Lanes second = x.upper(1);
  Lanes current = add_product(product(x.upper(0), left), second, middle);
  current = add_product(current, X::pair(x.lower(0), before), lower);
  Lanes next = product(second, left);
  const auto sum_of = [&](int64_t pixel) {
    const Lanes upper = x.upper(pixel + 2);
    const __m256i below = x.lower(pixel + 2);
    const Lanes pair = X::pair(before, below);
    const Lanes sum = add_product(add_product(current, upper, right), pair, last);
    current = add_product(add_product(next, upper, middle), pair, lower);
    next = product(upper, left);
    before = below;
    return sum;
  };
  by_strips(task.count, sum_of, finish);
}

// Only the outermost columns are shared by two output pixels.
template <typename X, typename Finish>
inline void square_of_stride_2(const DepthwiseTask& task, int64_t count, const Finish& finish) {
  const int16_t* weights = static_cast<const int16_t*>(task.weights);
  const Lanes left = weights_at(weights), middle = weights_at(weights + 32), right = weights_at(weights + 64);
  const Lanes lower = weights_at(weights + 96), none_last = weights_at(weights + 128);
  const Lanes last = {_mm256_srli_epi32(none_last.even, 16), _mm256_srli_epi32(none_last.odd, 16)};
  const Square<X> x{task.pixels, task.columns, task.channel, count};
  Lanes current = product(x.upper(0), left);
  current = add_product(current, X::pair(x.lower(0), x.lower(1)), lower);
  const auto sum_of = [&](int64_t pixel) {
    const Lanes upper = x.upper(2 * pixel + 2);
    const Lanes pair = X::pair(x.lower(2 * pixel + 2), x.lower(2 * pixel + 3));
    const Lanes sum = add_product(add_product(current, x.upper(2 * pixel + 1), middle), upper, right);
    current = add_product(product(upper, left), pair, lower);
    return add_product(sum, pair, last);
  };
  by_strips(task.count, sum_of, finish);
}

template <typename X, typename Finish>
inline void for_groups(const DepthwiseTask& task, int64_t count, const Finish& finish) {
  if (task.stride == 1) return square_of_stride_1<X>(task, count, finish);
  if (task.stride == 2) return square_of_stride_2<X>(task, count, finish);
  general<X>(task, count, finish);
}

// Writes sums as they are.
struct ToSums {
  Lanes bias;
  int64_t count, columns;
  int32_t* to;
  int64_t pitch;

  void operator()(const Lanes* sums, int64_t first, int64_t some) const {
    for (int64_t i = 0; i < some && first + i < count; ++i) {
      const Lanes sum = add(sums[i], bias);
      const __m256i a = _mm256_unpacklo_epi32(sum.even, sum.odd), b = _mm256_unpackhi_epi32(sum.even, sum.odd);
      const __m256i lower = _mm256_permute2x128_si256(a, b, 0x20), upper = _mm256_permute2x128_si256(a, b, 0x31);
      int32_t* row = to + (first + i) * pitch;
      if (columns == kLanes) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), lower);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 8), upper);
        continue;
      }
      alignas(32) int32_t spare[kLanes];
      _mm256_store_si256(reinterpret_cast<__m256i*>(spare), lower);
      _mm256_store_si256(reinterpret_cast<__m256i*>(spare + 8), upper);
      for (int64_t lane = 0; lane < columns; ++lane) row[lane] = spare[lane];
    }
  }
};

// A rescale of 8 lanes to words that lack the zero point, by shifts of at least 32, which need only the high halves of the
// products. Lanes come out in the order 0 2 1 3, 4 6 5 7.
class WideScale {
 public:
  WideScale(const DepthwiseScale& scale, int64_t lane)
      : even_multiplier_(load(scale.multiplier + lane)),
        odd_multiplier_(_mm256_srli_epi64(even_multiplier_, 32)),
        even_offset_(load(scale.even_offset + lane / 2)),
        odd_offset_(load(scale.odd_offset + lane / 2)),
        shift_(_mm256_shuffle_epi32(load(scale.shift + lane), 0xD8)) {}

  __m256i operator()(__m256i sums) const {
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(sums, even_multiplier_), even_offset_);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(sums, 32), odd_multiplier_), odd_offset_);
    const __m256 high = _mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0xDD);
    return _mm256_srav_epi32(_mm256_castps_si256(high), shift_);
  }
  // Saturating to 16 bits before the zero point is added changes no byte.
  static __m256i with_zero_point(__m256i words, __m256i zero_point) { return _mm256_adds_epi16(words, zero_point); }
  // Where the channels of either half of the words are.
  static constexpr int8_t kPlaces[] = {0, 4, 2, 6, 1, 5, 3, 7};

 private:
  __m256i even_multiplier_, odd_multiplier_, even_offset_, odd_offset_, shift_;
};

// The same where products fit 32 bits: its words have their zero point, and lanes stay in order.
class ShortScale {
 public:
  ShortScale(const DepthwiseScale& scale, int64_t lane)
      : multiplier_(load(scale.multiplier + lane)), offset_(load(scale.offset + lane)), shift_(load(scale.shift + lane)) {}

  __m256i operator()(__m256i sums) const {
    return _mm256_srav_epi32(_mm256_add_epi32(_mm256_mullo_epi32(sums, multiplier_), offset_), shift_);
  }
  static __m256i with_zero_point(__m256i words, __m256i) { return words; }
  static constexpr int8_t kPlaces[] = {0, 4, 1, 5, 2, 6, 3, 7};

 private:
  __m256i multiplier_, offset_, shift_;
};

// Rescales and writes bytes.
template <typename Scale>
class ToBytes {
 public:
  ToBytes(const DepthwiseScale& scale, int64_t count, int64_t columns, uint8_t* to, int64_t pitch)
      : even_(scale, 0),
        odd_(scale, kLanes / 2),
        zero_point_(_mm256_set1_epi16(scale.zero_point)),
        low_(_mm256_set1_epi8(static_cast<char>(scale.low))),
        high_(_mm256_set1_epi8(static_cast<char>(scale.high))),
        count_(count),
        columns_(columns),
        to_(to),
        pitch_(pitch) {}

  void operator()(const Lanes* sums, int64_t first, int64_t some) const {
    for (int64_t i = 0; i < some; i += 2) store(bytes(words(sums[i]), words(sums[i + 1])), first + i);
  }

 private:
  __m256i words(const Lanes& sums) const {
    return Scale::with_zero_point(_mm256_packs_epi32(even_(sums.even), odd_(sums.odd)), zero_point_);
  }
  // The bytes of one pixel in each half.
  __m256i bytes(__m256i a, __m256i b) const {
    const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(Scale::kPlaces));
    const __m256i order = _mm256_broadcastsi128_si256(_mm_unpacklo_epi64(half, _mm_add_epi8(half, _mm_set1_epi8(8))));
    const __m256i clamped = _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(a, b), low_), high_);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(clamped, order), 0xD8);
  }
  void store(__m256i pixels, int64_t first) const {
    uint8_t* row = to_ + first * pitch_;
    if (columns_ != kLanes) return store_some(pixels, row, count_ - first, pitch_, columns_);
    if (first >= count_) return;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row), _mm256_castsi256_si128(pixels));
    if (first + 1 >= count_) return;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row + pitch_), _mm256_extracti128_si256(pixels, 1));
  }
#if defined(__GNUC__)
  __attribute__((noinline))  // or its registers are spilled in the loop that rarely comes here
#endif
  static void
  store_some(__m256i pixels, uint8_t* row, int64_t count, int64_t pitch, int64_t columns) {
    alignas(32) uint8_t spare[2 * kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(spare), pixels);
    for (int64_t i = 0; i < 2 && i < count; ++i) {
      for (int64_t lane = 0; lane < columns; ++lane) row[i * pitch + lane] = spare[i * kLanes + lane];
    }
  }

  Scale even_, odd_;
  __m256i zero_point_, low_, high_;
  int64_t count_, columns_;
  uint8_t* to_;
  int64_t pitch_;
};

void sums8(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  for_groups<Bytes>(task, kLanes, ToSums{{load(bias), load(bias + 8)}, task.count, columns, to, pitch});
}

void sums16(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  for_groups<Words>(task, columns, ToSums{{load(bias), load(bias + 8)}, task.count, columns, to, pitch});
}

template <typename X>
void bytes_of(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t read, int64_t columns, uint8_t* to, int64_t pitch) {
  if (scale.offset != nullptr) {
    for_groups<X>(task, read, ToBytes<ShortScale>(scale, task.count, columns, to, pitch));
  } else {
    for_groups<X>(task, read, ToBytes<WideScale>(scale, task.count, columns, to, pitch));
  }
}

void bytes8(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  bytes_of<Bytes>(task, scale, kLanes, columns, to, pitch);
}

void bytes16(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  bytes_of<Words>(task, scale, columns, columns, to, pitch);
}

}  // namespace

extern const DepthwiseKernels kDepthwiseAvx2;
const DepthwiseKernels kDepthwiseAvx2 = {kLanes, kOrder, 2,      2, true,    kSquare, sizeof kSquare,
                                         sums8,  sums16, bytes8, bytes16};

}  // namespace cvm
