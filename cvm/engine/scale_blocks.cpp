// Lays out multipliers, shifts and halves for even and odd channels.
#include "scale_blocks.h"

#include <algorithm>
#include <cstring>

namespace cvm {
namespace {

constexpr std::uint64_t kLift = std::uint64_t{1} << 62;  // keeps products non-negative; no product is below -2^62

}  // namespace

bool fits_blocks(const StageData& rescale) { return !rescale.flag; }

bool has_high_halves(const StageData& rescale) {
  return std::all_of(rescale.shift.begin(), rescale.shift.end(), [](std::int32_t shift) { return shift >= 32; });
}

ScaleBlocksStorage::ScaleBlocksStorage(const StageData& rescale, std::span<const std::int64_t> channels,
                                       std::int64_t lanes, ScaleForm form)
    : lanes_(lanes), stride_(24 * lanes), form_(form) {
  write(rescale, channels);
}

ScaleBlocksStorage::ScaleBlocksStorage(const StageData& rescale, std::int64_t lanes, ScaleForm form)
    : lanes_(lanes), form_(form) {
  const std::vector<std::int64_t> first(static_cast<std::size_t>(lanes), 0);
  write(rescale, first);
}

void ScaleBlocksStorage::write(const StageData& rescale, std::span<const std::int64_t> channels) {
  const bool bytes = form_ == ScaleForm::stored_bytes;
  const std::int32_t bias = bytes ? 128 : 0;
  const auto lanes = static_cast<std::size_t>(lanes_);
  data_.assign(channels.size() * 3, 0);
  for (std::size_t column = 0; column < channels.size(); ++column) {
    const std::int64_t channel = rescale.multiplier.size() == 1 && channels[column] >= 0 ? 0 : channels[column];
    const std::int32_t multiplier = channel < 0 ? 0 : rescale.multiplier[static_cast<std::size_t>(channel)];
    const std::int32_t shift = channel < 0 ? 32 : rescale.shift[static_cast<std::size_t>(channel)];
    const std::size_t block = column / lanes * lanes * 3, lane = column % lanes;
    auto* narrow = reinterpret_cast<unsigned char*>(data_.data() + block);
    const auto offset = static_cast<std::uint32_t>(rescale.output_zero_point + bias) - static_cast<std::uint32_t>(kLift >> shift);
    std::memcpy(narrow + 4 * lane, &multiplier, 4);
    std::memcpy(narrow + 4 * (lanes + lane), &offset, 4);
    const std::size_t odd = lane % 2;
    std::int64_t* wide = data_.data() + block + lanes + lane / 2;
    wide[odd * lanes / 2] = static_cast<std::int64_t>(kLift + (std::uint64_t{1} << (shift - 1)));
    wide[lanes + odd * lanes / 2] = odd == 1 && bytes ? shift - 32 : shift;
  }
}

}  // namespace cvm
