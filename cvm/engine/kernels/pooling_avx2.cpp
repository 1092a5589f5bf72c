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

// Sums of 16 * kVectors bytes. 16 bits hold 257 of them, so every 256 places move on to 32 bits.
template <int kVectors>
struct Bytes {
  static constexpr int64_t kWidth = 16 * kVectors;
  static void run(const PoolRun& run, const uint8_t* from, int32_t* to) {
    __m256i narrow[kVectors], wide[2 * kVectors];
    for (__m256i& sum : narrow) sum = _mm256_setzero_si256();
    for (__m256i& sum : wide) sum = _mm256_setzero_si256();
    int places = 0;
    for (int64_t row = 0; row < run.rows; ++row) {
      const uint8_t* x = from + row * run.row_step;
      for (int64_t column = 0; column < run.columns; ++column, x += run.column_step) {
        for (int i = 0; i < kVectors; ++i) {
          const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x) + i);
          narrow[i] = _mm256_add_epi16(narrow[i], _mm256_cvtepu8_epi16(bytes));
        }
        if (++places < 256) continue;
        widen(narrow, wide);
        places = 0;
      }
    }
    widen(narrow, wide);
    for (int i = 0; i < 2 * kVectors; ++i) store(to + 8 * i, wide[i]);
  }
  static void widen(__m256i (&narrow)[kVectors], __m256i (&wide)[2 * kVectors]) {
    for (int i = 0; i < kVectors; ++i) {
      const __m256i front = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(narrow[i]));
      const __m256i back = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(narrow[i], 1));
      wide[2 * i] = _mm256_add_epi32(wide[2 * i], front);
      wide[2 * i + 1] = _mm256_add_epi32(wide[2 * i + 1], back);
      narrow[i] = _mm256_setzero_si256();
    }
  }
};

template <int kVectors>
struct Words {
  static constexpr int64_t kWidth = 8 * kVectors;
  static void run(const PoolRun& run, const int16_t* from, int32_t* to) {
    __m256i sums[kVectors];
    for (__m256i& sum : sums) sum = _mm256_setzero_si256();
    for (int64_t row = 0; row < run.rows; ++row) {
      const int16_t* x = from + row * run.row_step;
      for (int64_t column = 0; column < run.columns; ++column, x += run.column_step) {
        for (int i = 0; i < kVectors; ++i) {
          const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x) + i);
          sums[i] = _mm256_add_epi32(sums[i], _mm256_cvtepi16_epi32(words));
        }
      }
    }
    for (int i = 0; i < kVectors; ++i) store(to + 8 * i, sums[i]);
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

// Covers the channels from `done` on with as many blocks as fit; gives how many channels are done.
template <typename Block, typename T, typename Out>
int64_t cover(const PoolRun& run, int64_t done, const T* from, Out* to) {
  for (; done + Block::kWidth <= run.width; done += Block::kWidth) Block::run(run, from + done, to + done);
  return done;
}

template <typename Wide, typename Narrow, typename One, typename T, typename Out>
void pool(const PoolRun& run, const T* from, Out* to) {
  for (int64_t place = 0; place < run.count; ++place, from += run.from_step, to += run.to_step) {
    int64_t done = cover<Narrow>(run, cover<Wide>(run, 0, from, to), from, to);
    if (done < run.width && run.width >= Narrow::kWidth) {
      done = cover<Narrow>(run, run.width - Narrow::kWidth, from, to);
    }
    cover<One>(run, done, from, to);
  }
}

template <typename T>
void greatest(const PoolRun& run, const T* from, T* to) {
  pool<Block64<T>, Block16<T>, Single<T>>(run, from, to);
}

void sum8(const PoolRun& run, const uint8_t* from, int32_t* to) {
  pool<Bytes<4>, Bytes<1>, SingleSum<uint8_t>>(run, from, to);
}

void sum16(const PoolRun& run, const int16_t* from, int32_t* to) {
  pool<Words<4>, Words<1>, SingleSum<int16_t>>(run, from, to);
}

}  // namespace

extern const PoolingKernels kPoolingAvx2;
const PoolingKernels kPoolingAvx2 = {greatest<uint8_t>, greatest<int16_t>, greatest<int32_t>, sum8, sum16};

}  // namespace cvm
