// Copying one run of neighbouring bytes, between the plain and the stored form of i8 where they differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor.h"

namespace cvm {

// What turns the bytes of one operand into those of another of its dtype by exclusive or: 0x80 in every byte where
// exactly one of them is biased.
inline std::uint64_t flip_between(const Operand& from, const Operand& to) {
  return from.biased() != to.biased() ? 0x8080808080808080u : 0;
}

// Reads and writes exactly `bytes` bytes; the two do not overlap.
template <typename Word>
void move_ends(const std::byte* from, std::byte* to, std::int64_t bytes, std::uint64_t flip) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(Word));
  Word first, last;
  std::memcpy(&first, from, sizeof(Word));
  std::memcpy(&last, from + bytes - kSize, sizeof(Word));
  first = static_cast<Word>(first ^ flip);
  last = static_cast<Word>(last ^ flip);
  std::memcpy(to, &first, sizeof(Word));
  std::memcpy(to + bytes - kSize, &last, sizeof(Word));
}

inline void move_row(const std::byte* from, std::byte* to, std::int64_t bytes, std::uint64_t flip) {
  if (bytes > 16) {
    if (flip == 0) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
    } else {
      for (std::int64_t i = 0; i < bytes; ++i) to[i] = from[i] ^ std::byte{0x80};
    }
  } else if (bytes >= 8) {
    move_ends<std::uint64_t>(from, to, bytes, flip);
  } else if (bytes >= 4) {
    move_ends<std::uint32_t>(from, to, bytes, flip);
  } else {
    for (std::int64_t i = 0; i < bytes; ++i) to[i] = from[i] ^ static_cast<std::byte>(flip & 0xFF);
  }
}

}  // namespace cvm
