// Pooling with AVX2. The last block of channels overlaps the one before it, so that no tail is left where there is at
// least one block; narrower results go channel by channel.
#include "kernels/pooling.h"

#include <immintrin.h>

namespace cvm {
namespace {

template <typename T>
struct Greatest {
  static __m256i of(__m256i x, __m256i y) {
    return sizeof(T) == 1 ? _mm256_max_epu8(x, y) : sizeof(T) == 2 ? _mm256_max_epi16(x, y) : _mm256_max_epi32(x, y);
  }
  static __m128i of(__m128i x, __m128i y) {
    return sizeof(T) == 1 ? _mm_max_epu8(x, y) : sizeof(T) == 2 ? _mm_max_epi16(x, y) : _mm_max_epi32(x, y);
  }
};

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
void store(void* to, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }

// Blocks of channels: each has the greatest of one window for as many channels as it is wide.
template <typename T>
struct Block64 {
  static constexpr int64_t kWidth = 64 / sizeof(T);
  static void run(const PoolRun& run, const T* from, T* to) {
    __m256i front = load(from), back = load(from + kWidth / 2);
    for (int64_t row = 0; row < run.rows; ++row) {
      const T* x = from + row * run.row_step;
      for (int64_t column = 0; column < run.columns; ++column, x += run.column_step) {
        front = Greatest<T>::of(front, load(x));
        back = Greatest<T>::of(back, load(x + kWidth / 2));
      }
    }
    store(to, front);
    store(to + kWidth / 2, back);
  }
};

template <typename T>
struct Block16 {
  static constexpr int64_t kWidth = 16 / sizeof(T);
  static __m128i load16(const T* x) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(x)); }
  static void run(const PoolRun& run, const T* from, T* to) {
    __m128i best = load16(from);
    for (int64_t row = 0; row < run.rows; ++row) {
      const T* x = from + row * run.row_step;
      for (int64_t column = 0; column < run.columns; ++column, x += run.column_step) {
        best = Greatest<T>::of(best, load16(x));
      }
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), best);
  }
};

template <typename T>
struct Single {
  static constexpr int64_t kWidth = 1;
  static void run(const PoolRun& run, const T* from, T* to) {
    T best = *from;
    for (int64_t row = 0; row < run.rows; ++row) {
      const T* x = from + row * run.row_step;
      for (int64_t column = 0; column < run.columns; ++column, x += run.column_step) best = *x > best ? *x : best;
    }
    *to = best;
  }
};

// Sums of 16 bytes each. 16 bits hold 257 of them, so what is held there moves on to 32 bits after 256 places.
struct ByteSums {
  using Element = uint8_t;
  static constexpr int64_t kWidth = 16;
  static constexpr int kPlaces = 256;
  __m256i narrow = _mm256_setzero_si256(), front = narrow, back = narrow;
  void add(const uint8_t* x) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    narrow = _mm256_add_epi16(narrow, _mm256_cvtepu8_epi16(bytes));
  }
  void widen() {
    front = _mm256_add_epi32(front, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(narrow)));
    back = _mm256_add_epi32(back, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(narrow, 1)));
    narrow = _mm256_setzero_si256();
  }
  void give(int32_t* to) {
    widen();
    store(to, front);
    store(to + 8, back);
  }
};

// Sums of 8 integers of 16 bits each, in 32 bits from the start.
struct WordSums {
  using Element = int16_t;
  static constexpr int64_t kWidth = 8;
  static constexpr int kPlaces = 1 << 30;
  __m256i sums = _mm256_setzero_si256();
  void add(const int16_t* x) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    sums = _mm256_add_epi32(sums, _mm256_cvtepi16_epi32(words));
  }
  void widen() {}
  void give(int32_t* to) { store(to, sums); }
};

// Four of them side by side, by name: gcc 12 keeps an array of them in memory.
template <typename Sums>
struct Four {
  using Element = typename Sums::Element;
  static constexpr int64_t kWidth = 4 * Sums::kWidth;
  static constexpr int kPlaces = Sums::kPlaces;
  Sums a, b, c, d;
  void add(const Element* x) {
    a.add(x);
    b.add(x + Sums::kWidth);
    c.add(x + 2 * Sums::kWidth);
    d.add(x + 3 * Sums::kWidth);
  }
  void widen() {
    a.widen();
    b.widen();
    c.widen();
    d.widen();
  }
  void give(int32_t* to) {
    a.give(to);
    b.give(to + Sums::kWidth);
    c.give(to + 2 * Sums::kWidth);
    d.give(to + 3 * Sums::kWidth);
  }
};

template <typename Sums>
struct Summed {
  static constexpr int64_t kWidth = Sums::kWidth;
  static void run(const PoolRun& run, const typename Sums::Element* from, int32_t* to) {
    Sums sums;
    int places = 0;
    for (int64_t row = 0; row < run.rows; ++row) {
      const auto* x = from + row * run.row_step;
      for (int64_t column = 0; column < run.columns; ++column, x += run.column_step) {
        sums.add(x);
        if (++places < Sums::kPlaces) continue;
        sums.widen();
        places = 0;
      }
    }
    sums.give(to);
  }
};

template <typename T>
struct SingleSum {
  static constexpr int64_t kWidth = 1;
  static void run(const PoolRun& run, const T* from, int32_t* to) {
    int32_t sum = 0;
    for (int64_t row = 0; row < run.rows; ++row) {
      const T* x = from + row * run.row_step;
      for (int64_t column = 0; column < run.columns; ++column, x += run.column_step) sum += *x;
    }
    *to = sum;
  }
};

// Covers the channels from `channel` on with as many blocks as fit; gives the first channel that is left.
template <typename Block, typename T, typename Out>
int64_t cover(const PoolRun& run, int64_t channel, const T* from, Out* to) {
  for (; channel + Block::kWidth <= run.width; channel += Block::kWidth) Block::run(run, from + channel, to + channel);
  return channel;
}

template <typename Wide, typename Narrow, typename One, typename T, typename Out>
void pool(const PoolRun& run, const T* from, Out* to) {
  for (int64_t place = 0; place < run.count; ++place, from += run.from_step, to += run.to_step) {
    int64_t channel = cover<Narrow>(run, cover<Wide>(run, 0, from, to), from, to);
    if (channel < run.width && run.width >= Narrow::kWidth) {
      channel = cover<Narrow>(run, run.width - Narrow::kWidth, from, to);
    }
    cover<One>(run, channel, from, to);
  }
}

template <typename T>
void greatest(const PoolRun& run, const T* from, T* to) {
  pool<Block64<T>, Block16<T>, Single<T>>(run, from, to);
}

void sum8(const PoolRun& run, const uint8_t* from, int32_t* to) {
  pool<Summed<Four<ByteSums>>, Summed<ByteSums>, SingleSum<uint8_t>>(run, from, to);
}

void sum16(const PoolRun& run, const int16_t* from, int32_t* to) {
  pool<Summed<Four<WordSums>>, Summed<WordSums>, SingleSum<int16_t>>(run, from, to);
}

}  // namespace

extern const PoolingKernels kPoolingAvx2;
const PoolingKernels kPoolingAvx2 = {greatest<uint8_t>, greatest<int16_t>, greatest<int32_t>, sum8, sum16};

}  // namespace cvm
