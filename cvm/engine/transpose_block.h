// Transposes of 8-, 16- and 32-bit elements in blocks of 64-bit words, which every processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cvm {

template <typename T>
constexpr std::int64_t kBlock = 8 / static_cast<std::int64_t>(sizeof(T));  // elements in a word

// Low `bits` of every 2 * bits.
constexpr std::uint64_t alternate_bits(unsigned bits) {
  return bits == 32 ? 0x00000000FFFFFFFFu : bits == 16 ? 0x0000FFFF0000FFFFu : 0x00FF00FF00FF00FFu;
}

// The upper parts of `a` and the lower parts of `b`, of so many bits each, change places.
template <unsigned Bits>
inline void exchange(std::uint64_t& a, std::uint64_t& b) {
  const std::uint64_t change = ((a >> Bits) ^ b) & alternate_bits(Bits);
  b ^= change;
  a ^= change << Bits;
}

// Element c of word r becomes element r of word c: halves change places, then quarters, then eighths. Written out, so
// that words stay in registers.
inline void transpose_words(std::uint64_t (&word)[2]) { exchange<32>(word[0], word[1]); }

inline void transpose_words(std::uint64_t (&word)[4]) {
  exchange<32>(word[0], word[2]);
  exchange<32>(word[1], word[3]);
  exchange<16>(word[0], word[1]);
  exchange<16>(word[2], word[3]);
}

inline void transpose_words(std::uint64_t (&word)[8]) {
  exchange<32>(word[0], word[4]);
  exchange<32>(word[1], word[5]);
  exchange<32>(word[2], word[6]);
  exchange<32>(word[3], word[7]);
  exchange<16>(word[0], word[2]);
  exchange<16>(word[1], word[3]);
  exchange<16>(word[4], word[6]);
  exchange<16>(word[5], word[7]);
  exchange<8>(word[0], word[1]);
  exchange<8>(word[2], word[3]);
  exchange<8>(word[4], word[5]);
  exchange<8>(word[6], word[7]);
}

// One block: rows `from_pitch` apart become columns of rows `to_pitch` apart. Of the block's source rows only
// `from_rows` are read and of its result rows only `to_rows` written; each of them as a whole word.
template <typename T>
inline void transpose_block(const T* from, std::int64_t from_pitch, T* to, std::int64_t to_pitch,
                            std::int64_t from_rows, std::int64_t to_rows, std::uint64_t flip) {
  std::uint64_t word[kBlock<T>] = {};
  for (std::int64_t r = 0; r < from_rows; ++r) std::memcpy(&word[r], from + r * from_pitch, 8);
  transpose_words(word);
  for (std::int64_t r = 0; r < to_rows; ++r) {
    const std::uint64_t flipped = word[r] ^ flip;
    std::memcpy(to + r * to_pitch, &flipped, 8);
  }
}

template <typename T>
inline void transpose_elements(const T* from, std::int64_t from_pitch, T* to, std::int64_t to_pitch,
                               std::int64_t height, std::int64_t width, std::uint64_t flip) {
  for (std::int64_t j = 0; j < height; ++j) {
    for (std::int64_t i = 0; i < width; ++i) to[j * to_pitch + i] = static_cast<T>(from[i * from_pitch + j] ^ flip);
  }
}

// Result rows narrower than a word lie side by side: each is written as a whole word, and the next one over its end.
// The last rows are left, so that nothing is written past them. Returns how many rows are done.
template <typename T>
inline std::int64_t transpose_narrow(const T* from, std::int64_t from_pitch, T* to, std::int64_t height,
                                     std::int64_t width, std::uint64_t flip) {
  std::int64_t j = 0;
  for (; j + 2 * kBlock<T> <= height; j += kBlock<T>) {
    transpose_block<T>(from + j, from_pitch, to + j * width, width, width, kBlock<T>, flip);
  }
  return j;
}

// Source rows narrower than a word lie side by side: each is read as a whole word. The last ones are left, so that
// nothing is read past them. Returns how many are done.
template <typename T>
inline std::int64_t transpose_short(const T* from, T* to, std::int64_t to_pitch, std::int64_t height,
                                    std::int64_t width, std::uint64_t flip) {
  std::int64_t i = 0;
  for (; i + 2 * kBlock<T> <= width; i += kBlock<T>) {
    transpose_block<T>(from + i * height, height, to + i, to_pitch, kBlock<T>, height, flip);
  }
  return i;
}

template <typename T>
inline void transpose_blocks(const T* from, std::int64_t from_pitch, T* to, std::int64_t to_pitch, std::int64_t height,
                             std::int64_t width, std::uint64_t flip) {
  constexpr std::int64_t kSide = kBlock<T>;
  const std::int64_t whole_height = height / kSide * kSide, whole_width = width / kSide * kSide;
  for (std::int64_t j = 0; j < whole_height; j += kSide) {
    for (std::int64_t i = 0; i < whole_width; i += kSide) {
      transpose_block<T>(from + i * from_pitch + j, from_pitch, to + j * to_pitch + i, to_pitch, kSide, kSide, flip);
    }
  }
  transpose_elements(from + whole_width * from_pitch, from_pitch, to + whole_width, to_pitch, whole_height,
                     width - whole_width, flip);
  transpose_elements(from + whole_height, from_pitch, to + whole_height * to_pitch, to_pitch, height - whole_height,
                     width, flip);
}

// to[j * to_pitch + i] = from[i * from_pitch + j] for j < height and i < width; both pitches are positive. Reads and
// writes nothing else. Three colours get code of their own, since images have them.
template <typename T>
void transpose(const T* from, std::int64_t from_pitch, T* to, std::int64_t to_pitch, std::int64_t height,
               std::int64_t width, std::uint64_t flip) {
  constexpr std::int64_t kSide = kBlock<T>;
  if (width < kSide && to_pitch == width) {
    const std::int64_t rows = width == 3 ? transpose_narrow<T>(from, from_pitch, to, height, 3, flip)
                                         : transpose_narrow<T>(from, from_pitch, to, height, width, flip);
    transpose_elements(from + rows, from_pitch, to + rows * to_pitch, to_pitch, height - rows, width, flip);
  } else if (height < kSide && from_pitch == height) {
    const std::int64_t rows = height == 3 ? transpose_short<T>(from, to, to_pitch, 3, width, flip)
                                          : transpose_short<T>(from, to, to_pitch, height, width, flip);
    transpose_elements(from + rows * from_pitch, from_pitch, to + rows, to_pitch, height, width - rows, flip);
  } else {
    transpose_blocks(from, from_pitch, to, to_pitch, height, width, flip);
  }
}

}  // namespace cvm
