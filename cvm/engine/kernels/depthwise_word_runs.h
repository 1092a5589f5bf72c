// Depthwise sums of 16-bit pixels that finish in registers: squares of a run of two blocks, and what makes 16-bit integers of one block.
// What differs by processor is a type V:
//   Vector, Half, kLanes         a vector of as many sums as a block has channels, and half of one
//   load, zero, of_words, of_bytes    vectors of memory, of zeros, of one 16-bit integer or byte
//   low, high                    16-bit integers of two vectors in turns, from the lower or the upper half of each part
//   dot_words                    adds two products to each sum
//   pack_words, pack_bytes       sums to 16 bits, and these to bytes, part by part
//   in_order                     what was packed of two pixels, one after the other
//   hold_words, hold_bytes       between two bounds
//   first, second                the halves of a vector
//   store                        a vector or a half, or channels of one
// and what `depthwise_columns.h` wants. Files include the scales of their processor first.
#pragma once

#include "kernels/depthwise_columns.h"

namespace cvm {
namespace {

template <typename V>
struct WordRun {
  using Vector = typename V::Vector;

  // One column of a square for two blocks: in each vector the first two taps of a block's channels, or the third one and a zero.
  struct Column {
    Vector upper[kWordRun], lower[kWordRun];
  };

  static CVM_ALWAYS_INLINE Column column_at(const DepthwiseTask& task, int64_t column) {
    const void* const* at = task.pixels + column;
    const auto line = [&](int64_t p) { return V::load(static_cast<const int16_t*>(at[p * task.columns]) + task.channel); };
    const Vector a = line(0), b = line(1), c = line(2), none = V::zero();
    return {{V::low(a, b), V::high(a, b)}, {V::low(c, none), V::high(c, none)}};
  }
};

// The rescaled sums of two output pixels as 16-bit integers of a run's channels in their order. Constants are read where they are
// needed, once for both pixels: there are more than registers.
template <typename V, typename Scale>
class RescaledWords {
 public:
  using Vector = typename V::Vector;
  using Column = typename WordRun<V>::Column;

  RescaledWords(const DepthwiseTask& task, const DepthwiseScale& scale)
      : weights_(static_cast<const uint8_t*>(task.weights)), scale_(scale) {}

  // The second pixel begins kStride columns behind the first one.
  template <int kStride>
  CVM_ALWAYS_INLINE void take(const Column (&columns)[3 + kStride], Vector (&words)[2]) const {
    const Pair low = scaled<kStride>(columns, 0), high = scaled<kStride>(columns, 1);
    words[0] = V::pack_words(low.first, high.first);
    words[1] = V::pack_words(low.second, high.second);
  }

 private:
  static constexpr int kBytes = sizeof(Vector);
  // Of a block: for each column the first two taps of its channels, then the third one and a zero.
  static constexpr int kWeightBytes = 6 * kBytes;

  struct Pair {
    Vector first, second;  // of a block's channels of two pixels
  };

  template <int kStride>
  CVM_ALWAYS_INLINE Pair scaled(const Column (&columns)[3 + kStride], int u) const {
    Pair sums{V::zero(), V::zero()};
#pragma GCC unroll 3
    for (int q = 0; q < 3; ++q) {
      const uint8_t* weights = weights_ + u * kWeightBytes + q * 2 * kBytes;
      const Vector upper = V::load(weights), lower = V::load(weights + kBytes);
      sums.first = V::dot_words(sums.first, columns[q].upper[u], upper);
      sums.second = V::dot_words(sums.second, columns[q + kStride].upper[u], upper);
      sums.first = V::dot_words(sums.first, columns[q].lower[u], lower);
      sums.second = V::dot_words(sums.second, columns[q + kStride].lower[u], lower);
    }
    const Scale scale(scale_, u * V::kLanes);
    return {scale(sums.first), scale(sums.second)};
  }

  const uint8_t* weights_;
  DepthwiseScale scale_;
};

template <typename V, typename Scale>
class WordRunToBytes {
 public:
  using Vector = typename V::Vector;

  WordRunToBytes(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch)
      : rescaled_(task, scale),
        zero_point_(V::of_words(scale.zero_point)),
        low_(V::of_bytes(static_cast<char>(scale.low))),
        high_(V::of_bytes(static_cast<char>(scale.high))),
        to_(to),
        pitch_(pitch),
        count_(task.count) {}

  template <int kStride>
  CVM_ALWAYS_INLINE void operator()(const typename WordRun<V>::Column (&columns)[3 + kStride], int64_t pixel) const {
    Vector words[2];
    rescaled_.template take<kStride>(columns, words);
    const Vector both = V::pack_bytes(Scale::with_zero_point(words[0], zero_point_), Scale::with_zero_point(words[1], zero_point_));
    const Vector bytes = V::hold_bytes(V::in_order(both), low_, high_);
    V::store(V::first(bytes), to_ + pixel * pitch_);
    if (pixel + 1 < count_) V::store(V::second(bytes), to_ + (pixel + 1) * pitch_);
  }

 private:
  RescaledWords<V, Scale> rescaled_;
  Vector zero_point_, low_, high_;
  uint8_t* to_;
  int64_t pitch_, count_;
};

template <typename V, typename Scale>
class WordRunToWords {
 public:
  using Vector = typename V::Vector;

  WordRunToWords(const DepthwiseTask& task, const DepthwiseScale& scale, int16_t* to, int64_t pitch)
      : rescaled_(task, scale), low_(V::of_words(scale.low)), high_(V::of_words(scale.high)), to_(to), pitch_(pitch), count_(task.count) {}

  template <int kStride>
  CVM_ALWAYS_INLINE void operator()(const typename WordRun<V>::Column (&columns)[3 + kStride], int64_t pixel) const {
    Vector words[2];
    rescaled_.template take<kStride>(columns, words);
    V::store(V::hold_words(words[0], low_, high_), to_ + pixel * pitch_);
    if (pixel + 1 < count_) V::store(V::hold_words(words[1], low_, high_), to_ + (pixel + 1) * pitch_);
  }

 private:
  RescaledWords<V, Scale> rescaled_;
  Vector low_, high_;
  int16_t* to_;
  int64_t pitch_, count_;
};

// The same of one block of channels, for any taps.
template <typename V, typename Scale>
struct BlockToWords {
  using Vector = typename V::Vector;

  Scale scale;
  Vector low, high;
  typename V::Channels channels;
  int64_t count;
  int16_t* to;
  int64_t pitch;

  void operator()(const Vector (&sums)[kGroup], int64_t first) const {
    for (int i = 0; i < kGroup && first + i < count; i += 2) {
      const Vector both = V::in_order(V::pack_words(scale(sums[i]), scale(sums[i + 1])));
      const Vector words = V::hold_words(both, low, high);
      int16_t* const at = to + (first + i) * pitch;
      V::store(V::first(words), at, channels);
      if (first + i + 1 < count) V::store(V::second(words), at + pitch, channels);
    }
  }
};

template <typename V, typename Finish>
void word_run(const DepthwiseTask& task, const Finish& finish) {
  task.stride == 1 ? run_squares<1, WordRun<V>>(task, finish) : run_squares<2, WordRun<V>>(task, finish);
}

// Calls body(scale) with a type that takes a scale to 16 bits, which is never short.
template <typename Body>
void by_long_scale(const DepthwiseScale& scale, const Body& body) {
  scale.by_halves ? body.template operator()<HalfScale>() : body.template operator()<WideScale>();
}

template <typename V>
void block_to_words(const DepthwiseTask& task, const DepthwiseScale& scale, typename V::Channels channels, int16_t* to, int64_t pitch) {
  by_long_scale(scale, [&]<typename Scale>() {
    const auto low = V::of_words(scale.low), high = V::of_words(scale.high);
    for_groups<V>(task, channels, BlockToWords<V, Scale>{Scale(scale, 0), low, high, channels, task.count, to, pitch});
  });
}

}  // namespace
}  // namespace cvm
