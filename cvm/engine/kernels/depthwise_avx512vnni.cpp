// Depthwise sums with AVX-512 VNNI: four taps of 16 channels at once, exactly.
#include "kernels/depthwise_avx512.h"

namespace cvm {
namespace {

// Four blocks at once: where interleaving lines of 64 bytes leaves the channels, in every quarter of a vector by itself.
constexpr int kRun = 4;
constexpr int8_t kRunOrder[] = {
    0,  1,  2,  3,  16, 17, 18, 19, 32, 33, 34, 35, 48, 49, 50, 51, 4,  5,  6,  7,  20, 21, 22, 23, 36, 37, 38, 39, 52, 53, 54, 55,
    8,  9,  10, 11, 24, 25, 26, 27, 40, 41, 42, 43, 56, 57, 58, 59, 12, 13, 14, 15, 28, 29, 30, 31, 44, 45, 46, 47, 60, 61, 62, 63,
};

// 16 channels of one tap, four of them for each quarter to choose.
__m512i bytes_at(const void* pixel, int64_t channel) {
  const auto* from = reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(pixel) + channel);
  return _mm512_broadcast_i32x4(_mm_loadu_si128(from));
}

// Byte i of each 32-bit lane: the channel of that lane.
__m512i spread() {
  return _mm512_set_epi32(0x0F0F0F0F, 0x0E0E0E0E, 0x0D0D0D0D, 0x0C0C0C0C, 0x0B0B0B0B, 0x0A0A0A0A, 0x09090909,
                          0x08080808, 0x07070707, 0x06060606, 0x05050505, 0x04040404, 0x03030303, 0x02020202,
                          0x01010101, 0);
}

constexpr __mmask64 kFirst = 0x1111111111111111, kSecond = kFirst << 1, kThird = kFirst << 2, kFourth = kFirst << 3;

__m512i three_taps(__m512i a, __m512i b, __m512i c) {
  const __m512i two = _mm512_mask_shuffle_epi8(_mm512_maskz_shuffle_epi8(kFirst, a, spread()), kSecond, b, spread());
  return _mm512_mask_shuffle_epi8(two, kThird, c, spread());
}

struct Bytes : SixteenSums {
  static constexpr int kStep = 4;
  using Column = __m512i;  // three taps and a zero
  using Weights = __m512i;

  static __m512i taps(const void* const* at, int64_t channel, __mmask16) {
    const __m512i three = three_taps(bytes_at(at[0], channel), bytes_at(at[1], channel), bytes_at(at[2], channel));
    return _mm512_mask_shuffle_epi8(three, kFourth, bytes_at(at[3], channel), spread());
  }
  static __m512i add_product(__m512i sum, __m512i x, __m512i w) { return _mm512_dpbusd_epi32(sum, x, w); }

  static Column column_at(const void* const* at, int64_t line, int64_t channel, __mmask16) {
    return three_taps(bytes_at(at[0], channel), bytes_at(at[line], channel), bytes_at(at[2 * line], channel));
  }
  static Weights weights_at(const uint8_t* from, int column) { return load(from + column * 64); }
  static __m512i add_column(__m512i sum, const Column& x, const Weights& w) { return add_product(sum, x, w); }
};

// Writes sums as they are.
struct ToSums {
  __m512i bias;
  __mmask16 mask;
  int64_t count;
  int32_t* to;
  int64_t pitch;

  void operator()(const __m512i (&sums)[kGroup], int64_t first) const {
    for (int i = 0; i < kGroup && first + i < count; ++i) {
      _mm512_mask_storeu_epi32(to + (first + i) * pitch, mask, _mm512_add_epi32(sums[i], bias));
    }
  }
};

// Rescales and writes bytes.
template <typename Scale>
class ToBytes {
 public:
  ToBytes(const DepthwiseScale& scale, int64_t count, int64_t columns, uint8_t* to, int64_t pitch)
      : scale_(scale, 0),
        zero_point_(_mm512_set1_epi16(scale.zero_point)),
        low_(_mm512_set1_epi8(static_cast<char>(scale.low))),
        high_(_mm512_set1_epi8(static_cast<char>(scale.high))),
        mask_(first_lanes(columns)),
        count_(count),
        to_(to),
        pitch_(pitch) {}

  void operator()(const __m512i (&sums)[kGroup], int64_t first) const {
    const __m512i packed = _mm512_packus_epi16(words(sums[0], sums[1]), words(sums[2], sums[3]));
    const __m512i clamped = _mm512_min_epu8(_mm512_max_epu8(packed, low_), high_);
    const __m512i by_pixel = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i pixels = _mm512_permutexvar_epi32(by_pixel, clamped);
    store(_mm512_castsi512_si128(pixels), first);
    store(_mm512_extracti32x4_epi32(pixels, 1), first + 1);
    store(_mm512_extracti32x4_epi32(pixels, 2), first + 2);
    store(_mm512_extracti32x4_epi32(pixels, 3), first + 3);
  }

 private:
  // In each quarter: four channels of a, the same of b.
  __m512i words(__m512i a, __m512i b) const {
    return Scale::with_zero_point(_mm512_packs_epi32(scale_(a), scale_(b)), zero_point_);
  }
  void store(__m128i pixel, int64_t number) const {
    if (number >= count_) return;
    if (mask_ == 0xFFFF) {  // nearly always, and a masked store of bytes may cost more
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to_ + number * pitch_), pixel);
    } else {
      _mm_mask_storeu_epi8(to_ + number * pitch_, mask_, pixel);
    }
  }

  Scale scale_;
  __m512i zero_point_, low_, high_;
  __mmask16 mask_;
  int64_t count_;
  uint8_t* to_;
  int64_t pitch_;
};

struct Run {
  // One column of a square for four blocks: in each vector the three taps of 16 channels and a zero.
  struct Column {
    __m512i taps[kRun];
  };

  static Column column_at(const DepthwiseTask& task, int64_t column) {
    const void* const* at = task.pixels + column;
    const auto line = [&](int64_t p) { return load(static_cast<const uint8_t*>(at[p * task.columns]) + task.channel); };
    const __m512i a = line(0), b = line(1), c = line(2), none = _mm512_setzero_si512();
    const __m512i low_ab = _mm512_unpacklo_epi8(a, b), high_ab = _mm512_unpackhi_epi8(a, b);
    const __m512i low_c = _mm512_unpacklo_epi8(c, none), high_c = _mm512_unpackhi_epi8(c, none);
    return {{_mm512_unpacklo_epi16(low_ab, low_c), _mm512_unpackhi_epi16(low_ab, low_c), _mm512_unpacklo_epi16(high_ab, high_c),
             _mm512_unpackhi_epi16(high_ab, high_c)}};
  }
};

// The sums of two output pixels from the columns that they see, to bytes of 64 channels. Constants are read where they
// are needed, once for both pixels: there are more than registers.
template <typename Scale>
class RunToBytes {
 public:
  RunToBytes(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch)
      : weights_(static_cast<const uint8_t*>(task.weights)),
        scale_(scale),
        zero_point_(_mm512_set1_epi16(scale.zero_point)),
        low_(_mm512_set1_epi8(static_cast<char>(scale.low))),
        high_(_mm512_set1_epi8(static_cast<char>(scale.high))),
        to_(to),
        pitch_(pitch),
        count_(task.count) {}

  // The second pixel begins kStride columns behind the first one.
  template <int kStride>
  void operator()(const Run::Column (&columns)[3 + kStride], int64_t pixel) const {
    __m512i words[2][kRun / 2];
#pragma GCC unroll 2
    for (int half = 0; half < kRun / 2; ++half) {
      const Pair low = scaled<kStride>(columns, 2 * half), high = scaled<kStride>(columns, 2 * half + 1);
      words[0][half] = Scale::with_zero_point(_mm512_packs_epi32(low.first, high.first), zero_point_);
      words[1][half] = Scale::with_zero_point(_mm512_packs_epi32(low.second, high.second), zero_point_);
    }
    store(words[0], pixel);
    if (pixel + 1 < count_) store(words[1], pixel + 1);
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
      const __m512i weights = load(weights_ + u * 192 + q * 64);
      sums.first = _mm512_dpbusd_epi32(sums.first, columns[q].taps[u], weights);
      sums.second = _mm512_dpbusd_epi32(sums.second, columns[q + kStride].taps[u], weights);
    }
    const Scale scale(scale_, u * kLanes);
    return {scale(sums.first), scale(sums.second)};
  }

  void store(const __m512i (&words)[2], int64_t pixel) const {
    const __m512i bytes = _mm512_packus_epi16(words[0], words[1]);
    _mm512_storeu_si512(to_ + pixel * pitch_, _mm512_min_epu8(_mm512_max_epu8(bytes, low_), high_));
  }

  const uint8_t* weights_;
  DepthwiseScale scale_;
  __m512i zero_point_, low_, high_;
  uint8_t* to_;
  int64_t pitch_, count_;
};

void sums8(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  for_groups<Bytes>(task, 0xFFFF, ToSums{load(bias), first_lanes(columns), task.count, to, pitch});
}

void sums16(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  const __mmask16 mask = first_lanes(columns);
  for_groups<Words>(task, mask, ToSums{load(bias), mask, task.count, to, pitch});
}

template <typename X>
void bytes_of(const DepthwiseTask& task, const DepthwiseScale& scale, __mmask16 mask, int64_t columns, uint8_t* to, int64_t pitch) {
  by_scale(scale, [&]<typename Scale>() { for_groups<X>(task, mask, ToBytes<Scale>(scale, task.count, columns, to, pitch)); });
}

void bytes8(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  bytes_of<Bytes>(task, scale, 0xFFFF, columns, to, pitch);
}

void bytes16(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  bytes_of<Words>(task, scale, first_lanes(columns), columns, to, pitch);
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

extern const DepthwiseKernels kDepthwiseAvx512vnni;
const DepthwiseKernels kDepthwiseAvx512vnni = {kLanes,  nullptr,        Bytes::kStep, Words::kStep, false,
                                               kSquare, sizeof kSquare, sums8,        sums16,       bytes8,
                                               bytes16, {kRun, kRunOrder, run8}, {kWordRun, kWordRunOrder, word_run_to_bytes, word_run_to_words},
                                               words_to_words, true};

}  // namespace cvm
