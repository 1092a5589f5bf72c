// Reads shifts and factors out of rescales.
#include "shift_blocks.h"

#include <utility>

#include "scale_blocks.h"

namespace cvm {
namespace {

constexpr std::int32_t kMaxFactor = 32767;

std::optional<std::int32_t> left_shift(const StageData& rescale, std::int64_t channel) {
  const auto place = static_cast<std::size_t>(rescale.multiplier.size() == 1 ? 0 : channel);
  if (rescale.multiplier[place] != 1 << kOneShift || rescale.shift[place] > kOneShift) return std::nullopt;
  return kOneShift - rescale.shift[place];
}

std::optional<std::int32_t> whole_factor(const StageData& rescale, std::int64_t channel) {
  const auto place = static_cast<std::size_t>(rescale.multiplier.size() == 1 ? 0 : channel);
  const std::int32_t multiplier = rescale.multiplier[place], shift = rescale.shift[place];
  if (multiplier == 0) return 0;
  if (shift >= 31 || multiplier % (1 << shift) != 0 || multiplier >> shift > kMaxFactor) return std::nullopt;
  return multiplier >> shift;
}

}  // namespace

std::optional<ShiftBlocksStorage> ShiftBlocksStorage::make(const StageData& own, const std::optional<StageData>& shortcut,
                                                           std::span<const std::int64_t> channels, std::int64_t lanes) {
  if (own.flag || (shortcut && shortcut->flag)) return std::nullopt;
  ShiftBlocksStorage blocks;
  blocks.lanes_ = lanes;
  blocks.data_.assign(channels.size() * kWords, 0);
  const auto n = static_cast<std::size_t>(lanes);
  for (std::size_t column = 0; column < channels.size(); ++column) {
    if (channels[column] < 0) continue;
    const std::optional<std::int32_t> shift = left_shift(own, channels[column]);
    const std::optional<std::int32_t> factor = shortcut ? whole_factor(*shortcut, channels[column]) : 0;
    if (!shift || !factor) return std::nullopt;
    std::int32_t* to = blocks.data_.data() + column / n * n * kWords + column % n;
    to[0] = *shift;
    to[n] = shortcut ? -(shortcut->input_zero_point + kStored) * *factor : 0;
    to[2 * n] = *factor;
  }
  return blocks;
}

std::vector<std::int32_t> ShiftBlocksStorage::take_constants() {
  const auto n = static_cast<std::size_t>(lanes_);
  std::vector<std::int32_t> constants(data_.size() / kWords);
  for (std::size_t column = 0; column < constants.size(); ++column) {
    constants[column] = std::exchange(data_[column / n * n * kWords + n + column % n], 0);
  }
  return constants;
}

}  // namespace cvm
