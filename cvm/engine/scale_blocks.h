// Rescales in the order in which vectors want them (kernels/scales.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "aligned.h"
#include "kernels/scales.h"
#include "stage.h"

namespace cvm {

inline constexpr std::int32_t kStored = 128;    // a stored i8 byte is its integer plus this
inline constexpr std::int32_t kOneShift = 30;  // a multiplier of 2^30 and this shift are a rescale by 1

// A rescale of one channel to stored bytes: (x multiplier + constant) >> shift, modulo 2^32.
struct ShortScale {
  std::int32_t multiplier, constant, shift;
};

// The scale of the channel at this place; the rescale must have fits32. `bias` is added to x.
ShortScale short_scale(const StageData& rescale, std::size_t place, std::int64_t bias = 0);
// Whether vectors can take this rescale to bytes as ScaleForm::short_bytes.
bool fits_short_bytes(const StageData& rescale);
// Whether a rescale that fits short bytes suits ScaleForm::odd_bytes, too. If it does, odd_bias is what is added to the
// sums of the channel at this place, modulo 2^32.
bool fits_odd_bytes(const StageData& rescale);
std::int32_t odd_bias(const StageData& rescale, std::size_t place);

// Whether vectors can take this rescale to 8 or 16 bits by halves: as ScaleForm::half_bytes or half_words.
bool fits_halves(const StageData& rescale);
// The scale of the channel at this place for a rescale that does, where plain integers are stored as `stored` more: multiplier,
// constant and shift of the form.
ShortScale half_scale(const StageData& rescale, std::size_t place, std::int32_t stored);

class ScaleBlocksStorage {
 public:
  ScaleBlocksStorage() = default;
  // `channels`: the channel of each column, -1 for a spare one; its length is a multiple of `lanes`. `form` decides which
  // kernels read it. In a form of short bytes, `biases` may have what is added to the sums of each column first.
  ScaleBlocksStorage(const StageData& rescale, std::span<const std::int64_t> channels, std::int64_t lanes, ScaleForm form,
                     std::span<const std::int32_t> biases = {});

  // The blocks from that of this column on; the column is a multiple of lanes.
  ScaleBlocks at(std::int64_t column) const {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(data_.data());
    return {bytes + column / lanes_ * stride_, stride_, form_};
  }

 private:
  struct Lane {
    std::int32_t multiplier, last;
    std::int64_t half, shift;
  };
  void write(const StageData& rescale, std::span<const std::int64_t> channels);
  void write_short(const StageData& rescale, std::span<const std::int64_t> channels, std::span<const std::int32_t> biases);
  ShortScale scale_of(const StageData& rescale, std::size_t place, std::int32_t bias) const;
  Lane lane_of(std::int32_t multiplier, std::int32_t shift, std::int32_t zero_point) const;

  std::int64_t lanes_ = 1, stride_ = 0;
  ScaleForm form_ = ScaleForm::integers;
  Aligned<std::int64_t> data_;
};

// A rescale of i8 to i32 as ByteBlocks.
class ByteBlocksStorage {
 public:
  ByteBlocksStorage() = default;
  // Returns nothing if the shift or the multiplier of a channel does not suit.
  static std::optional<ByteBlocksStorage> make(const StageData& rescale, std::span<const std::int64_t> channels,
                                               std::int64_t lanes);

  // The blocks from that of this column on; the column is a multiple of lanes.
  ByteBlocks at(std::int64_t column) const {
    return {reinterpret_cast<const std::uint8_t*>(data_.data() + column * kWords), lanes_ * kWords * 4};
  }

 private:
  static constexpr std::int64_t kWords = 5;  // of a channel
  using Lane = std::array<std::int32_t, kWords>;  // low, high, low_add, high_add, shift
  static std::optional<Lane> lane_of(std::int64_t multiplier, std::int64_t shift, std::int64_t zero_point);

  std::int64_t lanes_ = 1;
  Aligned<std::int32_t> data_;
};

// Whether every channel of a rescale to i8 suits the form bytes, of one to i16 the form words.
bool fits_bytes(const StageData& rescale);
// The form that suits a rescale to i32, if vectors can do it at all: every result fits 32 bits before it saturates.
std::optional<ScaleForm> integer_form(const StageData& rescale);
}  // namespace cvm
