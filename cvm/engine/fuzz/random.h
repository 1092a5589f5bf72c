// Choices for random plans: from the bytes of a fuzzer as long as they last, then from a generator seeded by them. The
// same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cvm::fuzz {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du) {}
  explicit Random(std::span<const std::uint8_t> bytes) : state_(bytes.size()), bytes_(bytes) {
    for (const std::uint8_t byte : bytes) state_ = (state_ ^ byte) * 0x100000001B3u;
    state_ |= 1;
  }

  std::uint64_t next() {
    if (bytes_.size() >= 2) {
      const std::uint64_t bits = bytes_[0] | std::uint64_t{bytes_[1]} << 8;
      bytes_ = bytes_.subspan(2);
      return bits;
    }
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ * 0x2545F4914F6CDD1Du >> 16;
  }
  // 0 <= result < count.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool one_in(std::int64_t count) { return below(count) == 0; }
  template <typename Range>
  const auto& pick(const Range& range) {
    return range[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(range))))];
  }

 private:
  std::uint64_t state_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace cvm::fuzz
