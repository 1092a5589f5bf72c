// Depthwise sums of squares of 16-bit pixels with AVX-512 VNNI, 32 channels at once, and what makes 16-bit integers of them.
#include "kernels/depthwise_avx512.h"

namespace cvm {
namespace {

constexpr int kWeightBytes = 6 * 64;  // of a block: for each column the first two taps of 16 channels, then the third one and a zero

struct Run {
  // One column of a square for two blocks: in each vector the first two taps of 16 channels, or the third one and a zero.
  struct Column {
    __m512i upper[kWordRun], lower[kWordRun];
  };

  static Column column_at(const DepthwiseTask& task, int64_t column) {
    const void* const* at = task.pixels + column;
    const auto line = [&](int64_t p) { return load(static_cast<const int16_t*>(at[p * task.columns]) + task.channel); };
    const __m512i a = line(0), b = line(1), c = line(2), none = _mm512_setzero_si512();
    return {{_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)}, {_mm512_unpacklo_epi16(c, none), _mm512_unpackhi_epi16(c, none)}};
  }
};

// The rescaled sums of two output pixels as 16-bit integers of 32 channels in their order. Constants are read where they are needed,
// once for both pixels: there are more than registers.
template <typename Scale>
class Rescaled {
 public:
  Rescaled(const DepthwiseTask& task, const DepthwiseScale& scale) : weights_(static_cast<const uint8_t*>(task.weights)), scale_(scale) {}

  // The second pixel begins kStride columns behind the first one.
  template <int kStride>
  void take(const Run::Column (&columns)[3 + kStride], __m512i (&words)[2]) const {
    const Pair low = scaled<kStride>(columns, 0), high = scaled<kStride>(columns, 1);
    words[0] = _mm512_packs_epi32(low.first, high.first);
    words[1] = _mm512_packs_epi32(low.second, high.second);
  }

 private:
  struct Pair {
    __m512i first, second;  // of 16 channels of two pixels
  };

  template <int kStride>
  Pair scaled(const Run::Column (&columns)[3 + kStride], int u) const {
    Pair sums{_mm512_setzero_si512(), _mm512_setzero_si512()};
#pragma GCC unroll 3
    for (int q = 0; q < 3; ++q) {
      const uint8_t* weights = weights_ + u * kWeightBytes + q * 128;
      const __m512i upper = load(weights), lower = load(weights + 64);
      sums.first = _mm512_dpwssd_epi32(sums.first, columns[q].upper[u], upper);
      sums.second = _mm512_dpwssd_epi32(sums.second, columns[q + kStride].upper[u], upper);
      sums.first = _mm512_dpwssd_epi32(sums.first, columns[q].lower[u], lower);
      sums.second = _mm512_dpwssd_epi32(sums.second, columns[q + kStride].lower[u], lower);
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
        zero_point_(_mm512_set1_epi16(scale.zero_point)),
        low_(_mm512_set1_epi8(static_cast<char>(scale.low))),
        high_(_mm512_set1_epi8(static_cast<char>(scale.high))),
        to_(to),
        pitch_(pitch),
        count_(task.count) {}

  template <int kStride>
  void operator()(const Run::Column (&columns)[3 + kStride], int64_t pixel) const {
    __m512i words[2];
    rescaled_.template take<kStride>(columns, words);
    const __m512i both = _mm512_packus_epi16(Scale::with_zero_point(words[0], zero_point_), Scale::with_zero_point(words[1], zero_point_));
    const __m512i by_pixel = _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), both);
    const __m512i bytes = _mm512_min_epu8(_mm512_max_epu8(by_pixel, low_), high_);
    store(_mm512_castsi512_si256(bytes), pixel);
    if (pixel + 1 < count_) store(_mm512_extracti64x4_epi64(bytes, 1), pixel + 1);
  }

 private:
  void store(__m256i bytes, int64_t pixel) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to_ + pixel * pitch_), bytes); }

  Rescaled<Scale> rescaled_;
  __m512i zero_point_, low_, high_;
  uint8_t* to_;
  int64_t pitch_, count_;
};

template <typename Scale>
class ToWords {
 public:
  ToWords(const DepthwiseTask& task, const DepthwiseScale& scale, int16_t* to, int64_t pitch)
      : rescaled_(task, scale),
        low_(_mm512_set1_epi16(scale.low)),
        high_(_mm512_set1_epi16(scale.high)),
        to_(to),
        pitch_(pitch),
        count_(task.count) {}

  template <int kStride>
  void operator()(const Run::Column (&columns)[3 + kStride], int64_t pixel) const {
    __m512i words[2];
    rescaled_.template take<kStride>(columns, words);
    store(words[0], pixel);
    if (pixel + 1 < count_) store(words[1], pixel + 1);
  }

 private:
  void store(__m512i words, int64_t pixel) const {
    _mm512_storeu_si512(to_ + pixel * pitch_, _mm512_min_epi16(_mm512_max_epi16(words, low_), high_));
  }

  Rescaled<Scale> rescaled_;
  __m512i low_, high_;
  int16_t* to_;
  int64_t pitch_, count_;
};

// The same of one block of channels, for any taps.
template <typename Scale>
struct BlockToWords {
  Scale scale;
  __m512i low, high;
  __mmask16 mask;
  int64_t count;
  int16_t* to;
  int64_t pitch;

  void operator()(const __m512i (&sums)[kGroup], int64_t first) const {
    const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    for (int i = 0; i < kGroup && first + i < count; i += 2) {
      const __m512i both = _mm512_permutexvar_epi64(order, _mm512_packs_epi32(scale(sums[i]), scale(sums[i + 1])));
      const __m512i words = _mm512_min_epi16(_mm512_max_epi16(both, low), high);
      int16_t* const at = to + (first + i) * pitch;
      _mm256_mask_storeu_epi16(at, mask, _mm512_castsi512_si256(words));
      if (first + i + 1 < count) _mm256_mask_storeu_epi16(at + pitch, mask, _mm512_extracti64x4_epi64(words, 1));
    }
  }
};

template <typename Finish>
void run_of(const DepthwiseTask& task, const Finish& finish) {
  task.stride == 1 ? run_squares<1, Run>(task, finish) : run_squares<2, Run>(task, finish);
}

}  // namespace

void word_run_to_bytes(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch) {
  by_scale(scale, [&]<typename Scale>() { run_of(task, ToBytes<Scale>(task, scale, to, pitch)); });
}

void word_run_to_words(const DepthwiseTask& task, const DepthwiseScale& scale, int16_t* to, int64_t pitch) {
  scale.by_halves ? run_of(task, ToWords<HalfScale>(task, scale, to, pitch)) : run_of(task, ToWords<WideScale>(task, scale, to, pitch));
}

void words_to_words(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, int16_t* to, int64_t pitch) {
  const __mmask16 mask = first_lanes(columns);
  const auto run = [&]<typename Scale>(const Scale& of_block) {
    const __m512i low = _mm512_set1_epi16(scale.low), high = _mm512_set1_epi16(scale.high);
    for_groups<Words>(task, mask, BlockToWords<Scale>{of_block, low, high, mask, task.count, to, pitch});
  };
  scale.by_halves ? run(HalfScale(scale, 0)) : run(WideScale(scale, 0));
}

}  // namespace cvm
