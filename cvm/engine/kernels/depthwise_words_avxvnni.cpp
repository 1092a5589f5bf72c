// Depthwise sums of squares of 16-bit pixels with AVX-VNNI, 16 channels at once, and what makes 16-bit integers of them.
#include "kernels/depthwise_avxvnni.h"

namespace cvm {
namespace {

constexpr int kWeightBytes = 6 * 32;  // of a block: for each column the first two taps of 8 channels, then the third one and a zero

struct Run {
  // One column of a square for two blocks: in each vector the first two taps of 8 channels, or the third one and a zero.
  struct Column {
    __m256i upper[kWordRun], lower[kWordRun];
  };

  static CVM_ALWAYS_INLINE Column column_at(const DepthwiseTask& task, int64_t column) {
    const void* const* at = task.pixels + column;
    const auto line = [&](int64_t p) { return load(static_cast<const int16_t*>(at[p * task.columns]) + task.channel); };
    const __m256i a = line(0), b = line(1), c = line(2), none = _mm256_setzero_si256();
    return {{_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)}, {_mm256_unpacklo_epi16(c, none), _mm256_unpackhi_epi16(c, none)}};
  }
};

// The rescaled sums of two output pixels as 16-bit integers of 16 channels in their order. Constants are read where they are needed,
// once for both pixels: there are more than registers.
template <typename Scale>
class Rescaled {
 public:
  Rescaled(const DepthwiseTask& task, const DepthwiseScale& scale) : weights_(static_cast<const uint8_t*>(task.weights)), scale_(scale) {}

  // The second pixel begins kStride columns behind the first one.
  template <int kStride>
  CVM_ALWAYS_INLINE void take(const Run::Column (&columns)[3 + kStride], __m256i (&words)[2]) const {
    const Pair low = scaled<kStride>(columns, 0), high = scaled<kStride>(columns, 1);
    words[0] = _mm256_packs_epi32(low.first, high.first);
    words[1] = _mm256_packs_epi32(low.second, high.second);
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
      const uint8_t* weights = weights_ + u * kWeightBytes + q * 64;
      const __m256i upper = load(weights), lower = load(weights + 32);
      sums.first = dot_words(sums.first, columns[q].upper[u], upper);
      sums.second = dot_words(sums.second, columns[q + kStride].upper[u], upper);
      sums.first = dot_words(sums.first, columns[q].lower[u], lower);
      sums.second = dot_words(sums.second, columns[q + kStride].lower[u], lower);
    }
    const Scale scale(scale_, u * kLanes);
    return {scale(sums.first), scale(sums.second)};
  }

  const uint8_t* weights_;
  DepthwiseScale scale_;
};

template <typename Scale>
class ToBytes {
 public:
  ToBytes(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch)
      : rescaled_(task, scale),
        zero_point_(_mm256_set1_epi16(scale.zero_point)),
        low_(_mm256_set1_epi8(static_cast<char>(scale.low))),
        high_(_mm256_set1_epi8(static_cast<char>(scale.high))),
        to_(to),
        pitch_(pitch),
        count_(task.count) {}

  template <int kStride>
  CVM_ALWAYS_INLINE void operator()(const Run::Column (&columns)[3 + kStride], int64_t pixel) const {
    __m256i words[2];
    rescaled_.template take<kStride>(columns, words);
    const __m256i both = _mm256_packus_epi16(Scale::with_zero_point(words[0], zero_point_), Scale::with_zero_point(words[1], zero_point_));
    const __m256i by_pixel = _mm256_permute4x64_epi64(both, 0xD8);
    const __m256i bytes = _mm256_min_epu8(_mm256_max_epu8(by_pixel, low_), high_);
    store(_mm256_castsi256_si128(bytes), pixel);
    if (pixel + 1 < count_) store(_mm256_extracti128_si256(bytes, 1), pixel + 1);
  }

 private:
  void store(__m128i bytes, int64_t pixel) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(to_ + pixel * pitch_), bytes); }

  Rescaled<Scale> rescaled_;
  __m256i zero_point_, low_, high_;
  uint8_t* to_;
  int64_t pitch_, count_;
};

template <typename Scale>
class ToWords {
 public:
  ToWords(const DepthwiseTask& task, const DepthwiseScale& scale, int16_t* to, int64_t pitch)
      : rescaled_(task, scale),
        low_(_mm256_set1_epi16(scale.low)),
        high_(_mm256_set1_epi16(scale.high)),
        to_(to),
        pitch_(pitch),
        count_(task.count) {}

  template <int kStride>
  CVM_ALWAYS_INLINE void operator()(const Run::Column (&columns)[3 + kStride], int64_t pixel) const {
    __m256i words[2];
    rescaled_.template take<kStride>(columns, words);
    store(words[0], pixel);
    if (pixel + 1 < count_) store(words[1], pixel + 1);
  }

 private:
  void store(__m256i words, int64_t pixel) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to_ + pixel * pitch_), _mm256_min_epi16(_mm256_max_epi16(words, low_), high_));
  }

  Rescaled<Scale> rescaled_;
  __m256i low_, high_;
  int16_t* to_;
  int64_t pitch_, count_;
};

// The same of one block of channels, for any taps.
template <typename Scale>
struct BlockToWords {
  Scale scale;
  __m256i low, high;
  int64_t columns, count;
  int16_t* to;
  int64_t pitch;

  void operator()(const __m256i (&sums)[kGroup], int64_t first) const {
    for (int i = 0; i < kGroup && first + i < count; i += 2) {
      const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi32(scale(sums[i]), scale(sums[i + 1])), 0xD8);
      const __m256i words = _mm256_min_epi16(_mm256_max_epi16(both, low), high);
      int16_t* const at = to + (first + i) * pitch;
      store(_mm256_castsi256_si128(words), at);
      if (first + i + 1 < count) store(_mm256_extracti128_si256(words, 1), at + pitch);
    }
  }
  void store(__m128i words, int16_t* at) const {
    if (columns == kLanes) return _mm_storeu_si128(reinterpret_cast<__m128i*>(at), words);
    alignas(16) int16_t spare[kLanes];
    _mm_store_si128(reinterpret_cast<__m128i*>(spare), words);
    memcpy(at, spare, static_cast<size_t>(columns) * 2);
  }
};

template <typename Finish>
void run_of(const DepthwiseTask& task, const Finish& finish) {
  task.stride == 1 ? run_squares<1, Run>(task, finish) : run_squares<2, Run>(task, finish);
}

}  // namespace

void word_run_to_bytes_avxvnni(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch) {
  by_scale(scale, [&]<typename Scale>() { run_of(task, ToBytes<Scale>(task, scale, to, pitch)); });
}

void word_run_to_words_avxvnni(const DepthwiseTask& task, const DepthwiseScale& scale, int16_t* to, int64_t pitch) {
  scale.by_halves ? run_of(task, ToWords<HalfScale>(task, scale, to, pitch)) : run_of(task, ToWords<WideScale>(task, scale, to, pitch));
}

void words_to_words_avxvnni(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, int16_t* to, int64_t pitch) {
  const auto run = [&]<typename Scale>(const Scale& of_block) {
    const __m256i low = _mm256_set1_epi16(scale.low), high = _mm256_set1_epi16(scale.high);
    for_groups<Words>(task, columns, BlockToWords<Scale>{of_block, low, high, columns, task.count, to, pitch});
  };
  scale.by_halves ? run(HalfScale(scale, 0)) : run(WideScale(scale, 0));
}

}  // namespace cvm
