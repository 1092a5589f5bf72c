// Depthwise sums with AVX-VNNI: four taps of 8 channels at once, exactly.
#include "kernels/depthwise_avxvnni.h"

namespace cvm {
namespace {

// Four blocks at once: where interleaving lines of 32 bytes leaves the channels, in both halves of a vector by itself.
constexpr int kRun = 4;
constexpr int8_t kRunOrder[] = {0, 1, 2,  3,  16, 17, 18, 19, 4,  5,  6,  7,  20, 21, 22, 23,
                                8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31};

void store_upper(__m128i x, uint8_t* to) { _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_unpackhi_epi64(x, x)); }

struct Bytes : EightSums {
  static constexpr int kStep = 4;
  using Column = __m256i;  // three taps and a zero
  using Weights = __m256i;

  static __m128i at(const void* pixel, int64_t channel) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(pixel) + channel));
  }
  static __m256i four(__m128i a, __m128i b, __m128i c, __m128i d) {
    const __m128i ab = _mm_unpacklo_epi8(a, b), cd = _mm_unpacklo_epi8(c, d);
    return _mm256_set_m128i(_mm_unpackhi_epi16(ab, cd), _mm_unpacklo_epi16(ab, cd));
  }
  static __m256i taps(const void* const* from, int64_t channel, int64_t) {
    return four(at(from[0], channel), at(from[1], channel), at(from[2], channel), at(from[3], channel));
  }
  static __m256i add_product(__m256i sum, __m256i x, __m256i w) { return dot_bytes(sum, x, w); }

  static Column column_at(const void* const* from, int64_t line, int64_t channel, int64_t) {
    return four(at(from[0], channel), at(from[line], channel), at(from[2 * line], channel), _mm_setzero_si128());
  }
  static Weights weights_at(const uint8_t* from, int column) { return load(from + column * 32); }
  static __m256i add_column(__m256i sum, const Column& x, const Weights& w) { return dot_bytes(sum, x, w); }
};

// Writes sums as they are.
struct ToSums {
  __m256i bias;
  int64_t columns, count;
  int32_t* to;
  int64_t pitch;

  void operator()(const __m256i (&sums)[kGroup], int64_t first) const {
    for (int i = 0; i < kGroup && first + i < count; ++i) {
      alignas(32) int32_t spare[kLanes];
      const __m256i sum = _mm256_add_epi32(sums[i], bias);
      int32_t* row = to + (first + i) * pitch;
      if (columns == kLanes) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), sum);
        continue;
      }
      _mm256_store_si256(reinterpret_cast<__m256i*>(spare), sum);
      memcpy(row, spare, static_cast<size_t>(columns) * 4);
    }
  }
};

// Rescales and writes bytes.
template <typename Scale>
class ToBytes {
 public:
  ToBytes(const DepthwiseScale& scale, int64_t count, int64_t columns, uint8_t* to, int64_t pitch)
      : scale_(scale, 0),
        zero_point_(_mm256_set1_epi16(scale.zero_point)),
        low_(_mm256_set1_epi8(static_cast<char>(scale.low))),
        high_(_mm256_set1_epi8(static_cast<char>(scale.high))),
        columns_(columns),
        count_(count),
        to_(to),
        pitch_(pitch) {}

  void operator()(const __m256i (&sums)[kGroup], int64_t first) const {
    const __m256i packed = _mm256_packus_epi16(words(sums[0], sums[1]), words(sums[2], sums[3]));
    const __m256i clamped = _mm256_min_epu8(_mm256_max_epu8(packed, low_), high_);
    const __m256i pixels = _mm256_permutevar8x32_epi32(clamped, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    if (columns_ != kLanes || first + kGroup > count_) return store_some(pixels, first);
    const __m128i lower = _mm256_castsi256_si128(pixels), upper = _mm256_extracti128_si256(pixels, 1);
    uint8_t* row = to_ + first * pitch_;
    _mm_storel_epi64(reinterpret_cast<__m128i*>(row), lower);
    store_upper(lower, row + pitch_);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(row + 2 * pitch_), upper);
    store_upper(upper, row + 3 * pitch_);
  }

 private:
  // In each half: four channels of a, the same of b.
  __m256i words(__m256i a, __m256i b) const {
    return Scale::with_zero_point(_mm256_packs_epi32(scale_(a), scale_(b)), zero_point_);
  }
  void store_some(__m256i pixels, int64_t first) const {
    alignas(32) uint8_t spare[kGroup * kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(spare), pixels);
    for (int64_t i = 0; i < kGroup && first + i < count_; ++i) {
      memcpy(to_ + (first + i) * pitch_, spare + i * kLanes, static_cast<size_t>(columns_));
    }
  }

  Scale scale_;
  __m256i zero_point_, low_, high_;
  int64_t columns_, count_;
  uint8_t* to_;
  int64_t pitch_;
};

struct Run {
  // One column of a square for four blocks: in each vector the three taps of 8 channels and a zero.
  struct Column {
    __m256i taps[kRun];
  };

  static CVM_ALWAYS_INLINE Column column_at(const DepthwiseTask& task, int64_t column) {
    const void* const* at = task.pixels + column;
    const auto line = [&](int64_t p) { return load(static_cast<const uint8_t*>(at[p * task.columns]) + task.channel); };
    const __m256i a = line(0), b = line(1), c = line(2), none = _mm256_setzero_si256();
    const __m256i low_ab = _mm256_unpacklo_epi8(a, b), high_ab = _mm256_unpackhi_epi8(a, b);
    const __m256i low_c = _mm256_unpacklo_epi8(c, none), high_c = _mm256_unpackhi_epi8(c, none);
    return {{_mm256_unpacklo_epi16(low_ab, low_c), _mm256_unpackhi_epi16(low_ab, low_c), _mm256_unpacklo_epi16(high_ab, high_c),
             _mm256_unpackhi_epi16(high_ab, high_c)}};
  }
};

// The sums of two output pixels from the columns that they see, to bytes of 32 channels. Constants are read where they
// are needed, once for both pixels: there are more than registers.
template <typename Scale>
class RunToBytes {
 public:
  RunToBytes(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch)
      : weights_(static_cast<const uint8_t*>(task.weights)),
        scale_(scale),
        zero_point_(_mm256_set1_epi16(scale.zero_point)),
        low_(_mm256_set1_epi8(static_cast<char>(scale.low))),
        high_(_mm256_set1_epi8(static_cast<char>(scale.high))),
        to_(to),
        pitch_(pitch),
        count_(task.count) {}

  // The second pixel begins kStride columns behind the first one.
  template <int kStride>
  CVM_ALWAYS_INLINE void operator()(const Run::Column (&columns)[3 + kStride], int64_t pixel) const {
    __m256i words[2][kRun / 2];
#pragma GCC unroll 2
    for (int half = 0; half < kRun / 2; ++half) {
      const Pair low = scaled<kStride>(columns, 2 * half), high = scaled<kStride>(columns, 2 * half + 1);
      words[0][half] = Scale::with_zero_point(_mm256_packs_epi32(low.first, high.first), zero_point_);
      words[1][half] = Scale::with_zero_point(_mm256_packs_epi32(low.second, high.second), zero_point_);
    }
    store(words[0], pixel);
    if (pixel + 1 < count_) store(words[1], pixel + 1);
  }

 private:
  struct Pair {
    __m256i first, second;  // of 8 channels of two pixels
  };

  template <int kStride>
  CVM_ALWAYS_INLINE Pair scaled(const Run::Column (&columns)[3 + kStride], int u) const {
    Pair sums{_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 3
    for (int q = 0; q < 3; ++q) {
      const __m256i weights = load(weights_ + u * 96 + q * 32);
      sums.first = dot_bytes(sums.first, columns[q].taps[u], weights);
      sums.second = dot_bytes(sums.second, columns[q + kStride].taps[u], weights);
    }
    const Scale scale(scale_, u * kLanes);
    return {scale(sums.first), scale(sums.second)};
  }

  void store(const __m256i (&words)[2], int64_t pixel) const {
    const __m256i bytes = _mm256_packus_epi16(words[0], words[1]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to_ + pixel * pitch_), _mm256_min_epu8(_mm256_max_epu8(bytes, low_), high_));
  }

  const uint8_t* weights_;
  DepthwiseScale scale_;
  __m256i zero_point_, low_, high_;
  uint8_t* to_;
  int64_t pitch_, count_;
};

void sums8(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  for_groups<Bytes>(task, kLanes, ToSums{load(bias), columns, task.count, to, pitch});
}

void sums16(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  for_groups<Words>(task, columns, ToSums{load(bias), columns, task.count, to, pitch});
}

template <typename X>
void bytes_of(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  by_scale(scale, [&]<typename Scale>() { for_groups<X>(task, columns, ToBytes<Scale>(scale, task.count, columns, to, pitch)); });
}

template <typename Scale>
void run_of(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch) {
  const RunToBytes<Scale> finish(task, scale, to, pitch);
  task.stride == 1 ? run_squares<1, Run>(task, finish) : run_squares<2, Run>(task, finish);
}

void run8(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch) {
  by_scale(scale, [&]<typename Scale>() { run_of<Scale>(task, scale, to, pitch); });
}

}  // namespace

extern const DepthwiseKernels kDepthwiseAvxvnni;
const DepthwiseKernels kDepthwiseAvxvnni = {kLanes,
                                            nullptr,
                                            Bytes::kStep,
                                            Words::kStep,
                                            false,
                                            kSquare,
                                            sizeof kSquare,
                                            sums8,
                                            sums16,
                                            bytes_of<Bytes>,
                                            bytes_of<Words>,
                                            {kRun, kRunOrder, run8},
                                            {kWordRun, kWordRunOrder, word_run_to_bytes_avxvnni, word_run_to_words_avxvnni},
                                            words_to_words_avxvnni,
                                            true};

}  // namespace cvm
