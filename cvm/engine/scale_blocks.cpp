// Lays out multipliers, shifts and halves for even and odd channels.
#include "scale_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cvm {
namespace {

constexpr std::int64_t kLongBytes = 24;  // of a channel of a form whose products have 64 bits
constexpr std::uint64_t kLift = std::uint64_t{1} << 62;  // keeps products non-negative; no product is below -2^62

// A multiplier of 0, whose shift is 62, suits every form: its result is the zero point.
template <typename Suits>
bool every_channel(const StageData& rescale, Suits suits) {
  for (std::size_t i = 0; i < rescale.multiplier.size(); ++i) {
    if (rescale.multiplier[i] != 0 && !suits(rescale.shift[i])) return false;
  }
  return true;
}

std::int64_t channel_bytes(ScaleForm form) {
  switch (form) {
    case ScaleForm::odd_bytes: return 8;
    case ScaleForm::short_bytes: return 12;
    case ScaleForm::half_bytes:
    case ScaleForm::half_words: return 16;
    default: return kLongBytes;
  }
}

// By how many bits a multiplier and its shift can both be less: the shift keeps one bit, for the half.
int spare_bits(std::int32_t multiplier, std::int32_t shift) {
  return std::min(std::countr_zero(static_cast<std::uint32_t>(multiplier)), shift - 1);
}

}  // namespace

bool fits_short_bytes(const StageData& rescale) {
  if (!rescale.fits32 || rescale.input_zero_point != 0 || !rescale.zero_points.empty()) return false;
  for (std::size_t i = 0; i < rescale.multiplier.size(); ++i) {
    const std::int32_t multiplier = rescale.multiplier[i], shift = rescale.shift[i];
    if (multiplier != 0 && shift - spare_bits(multiplier, shift) > 31) return false;
  }
  return true;
}

ShortScale short_scale(const StageData& rescale, std::size_t place, std::int64_t bias) {
  const std::int32_t zero_point = rescale.output_zero_point + kStored;
  if (rescale.multiplier[place] == 0) return {0, zero_point, 0};
  const int spare = spare_bits(rescale.multiplier[place], rescale.shift[place]);
  const std::int32_t multiplier = rescale.multiplier[place] >> spare, shift = rescale.shift[place] - spare;
  const std::uint64_t half = std::uint64_t{1} << (shift - 1), product = static_cast<std::uint64_t>(bias) * static_cast<std::uint64_t>(multiplier);
  const std::uint64_t constant = product + half + (static_cast<std::uint64_t>(zero_point) << shift);
  return {multiplier, static_cast<std::int32_t>(static_cast<std::uint32_t>(constant)), shift};
}

bool fits_odd_bytes(const StageData& rescale) {
  for (std::size_t place = 0; place < rescale.multiplier.size(); ++place) {
    const ShortScale scale = short_scale(rescale, place);
    if (scale.multiplier % 2 == 0 && (scale.multiplier != 0 || scale.constant != 0)) return false;
  }
  return true;
}

// The inverse by Newton's method: an odd number is its own inverse modulo 2^3, and every step doubles the bits.
std::int32_t odd_bias(const StageData& rescale, std::size_t place) {
  const ShortScale scale = short_scale(rescale, place);
  const auto multiplier = static_cast<std::uint32_t>(scale.multiplier);
  std::uint32_t inverse = multiplier;
  for (int bits = 3; bits < 32; bits *= 2) inverse *= 2 - multiplier * inverse;
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(scale.constant) * inverse);
}

// Up to 22 more bits, the shifted zero point leaves the rest room in 32 bits.
bool fits_halves(const StageData& rescale) {
  if (rescale.input_zero_point != 0 || !rescale.zero_points.empty()) return false;
  const bool short_multipliers = std::all_of(rescale.multiplier.begin(), rescale.multiplier.end(),
                                             [](std::int32_t multiplier) { return (multiplier & 0xFFFF) == 0; });
  return short_multipliers && every_channel(rescale, [](std::int32_t shift) { return shift > 32 && shift <= 54; });
}

ShortScale half_scale(const StageData& rescale, std::size_t place, std::int32_t stored) {
  const std::int32_t zero_point = rescale.output_zero_point + stored;
  if (rescale.multiplier[place] == 0) return {0, zero_point, 0};
  const std::int32_t shift = rescale.shift[place] - 32;
  return {rescale.multiplier[place] >> 16, (std::int32_t{1} << (shift - 1)) + zero_point * (std::int32_t{1} << shift), shift};
}

// With shifts up to 53, the half and the shifted zero point leave the product room in 64 bits.
bool fits_bytes(const StageData& rescale) {
  return every_channel(rescale, [](std::int32_t shift) { return shift >= 32 && shift <= 53; });
}

std::optional<ScaleForm> integer_form(const StageData& rescale) {
  if (rescale.flag) return std::nullopt;
  const bool is_left = every_channel(rescale, [](std::int32_t shift) { return shift <= 32; });
  return is_left ? ScaleForm::left : ScaleForm::integers;
}

std::optional<ByteBlocksStorage> ByteBlocksStorage::make(const StageData& rescale, std::span<const std::int64_t> channels,
                                                         std::int64_t lanes) {
  if (rescale.flag) return std::nullopt;
  ByteBlocksStorage blocks;
  blocks.lanes_ = lanes;
  blocks.data_.assign(channels.size() * kWords, 0);
  for (std::size_t column = 0; column < channels.size(); ++column) {
    if (channels[column] < 0) continue;
    const auto place = static_cast<std::size_t>(rescale.multiplier.size() == 1 ? 0 : channels[column]);
    if (rescale.multiplier[place] == 0) continue;
    const std::optional<Lane> lane = lane_of(rescale.multiplier[place], rescale.shift[place], rescale.input_zero_point);
    if (!lane) return std::nullopt;
    const auto n = static_cast<std::size_t>(lanes);
    std::int32_t* to = blocks.data_.data() + column / n * n * kWords + column % n;
    for (std::size_t word = 0; word < lane->size(); ++word) to[word * n] = (*lane)[word];
  }
  return blocks;
}

// The multiplier in two halves of 16 bits, so that its product with a byte fits in 32.
std::optional<ByteBlocksStorage::Lane> ByteBlocksStorage::lane_of(std::int64_t multiplier, std::int64_t shift,
                                                                  std::int64_t zero_point) {
  const std::int64_t high = (multiplier + 32768) >> 16, low = multiplier - high * 65536;
  if (shift < 16 || shift > 47 || high > 32767) return std::nullopt;
  const std::int64_t add = (std::int64_t{1} << (shift - 1)) - (zero_point + kStored) * multiplier;
  return Lane{static_cast<std::int32_t>(low & 65535), static_cast<std::int32_t>(high), static_cast<std::int32_t>(add & 65535),
              static_cast<std::int32_t>(add >> 16), static_cast<std::int32_t>(shift - 16)};
}

ScaleBlocksStorage::ScaleBlocksStorage(const StageData& rescale, std::span<const std::int64_t> channels,
                                       std::int64_t lanes, ScaleForm form, std::span<const std::int32_t> biases)
    : lanes_(lanes), stride_(channel_bytes(form) * lanes), form_(form) {
  channel_bytes(form) < kLongBytes ? write_short(rescale, channels, biases) : write(rescale, channels);
}

void ScaleBlocksStorage::write_short(const StageData& rescale, std::span<const std::int64_t> channels,
                                     std::span<const std::int32_t> biases) {
  const auto lanes = static_cast<std::size_t>(lanes_), words = static_cast<std::size_t>(stride_ / lanes_ / 4);
  data_.assign((channels.size() * words + 1) / 2, 0);
  auto* bytes = reinterpret_cast<unsigned char*>(data_.data());
  for (std::size_t column = 0; column < channels.size(); ++column) {
    if (channels[column] < 0) continue;
    const std::size_t place = rescale.multiplier.size() == 1 ? 0 : static_cast<std::size_t>(channels[column]);
    const ShortScale scale = scale_of(rescale, place, biases.empty() ? 0 : biases[column]);
    unsigned char* to = bytes + 4 * (column / lanes * lanes * words + column % lanes);
    std::memcpy(to, &scale.multiplier, 4);
    if (form_ != ScaleForm::odd_bytes) std::memcpy(to + 4 * lanes, &scale.constant, 4);
    const std::int32_t factor = scale.multiplier * 65536;
    if (words == 4) std::memcpy(to + 8 * lanes, &factor, 4);
    std::memcpy(to + 4 * (words - 1) * lanes, &scale.shift, 4);
  }
}

ShortScale ScaleBlocksStorage::scale_of(const StageData& rescale, std::size_t place, std::int32_t bias) const {
  if (form_ == ScaleForm::half_words) return half_scale(rescale, place, 0);
  return form_ == ScaleForm::half_bytes ? half_scale(rescale, place, kStored) : short_scale(rescale, place, bias);
}

void ScaleBlocksStorage::write(const StageData& rescale, std::span<const std::int64_t> channels) {
  const auto lanes = static_cast<std::size_t>(lanes_);
  data_.assign(channels.size() * 3, 0);
  for (std::size_t column = 0; column < channels.size(); ++column) {
    const std::int64_t channel = rescale.multiplier.size() == 1 && channels[column] >= 0 ? 0 : channels[column];
    const auto place = static_cast<std::size_t>(channel);
    const bool zero = channel < 0 || rescale.multiplier[place] == 0;
    const Lane lane = lane_of(zero ? 0 : rescale.multiplier[place], zero ? 32 : rescale.shift[place], rescale.output_zero_point);
    const std::size_t block = column / lanes * lanes * 3, odd = column % 2;
    auto* narrow = reinterpret_cast<unsigned char*>(data_.data() + block);
    std::memcpy(narrow + 4 * (column % lanes), &lane.multiplier, 4);
    std::memcpy(narrow + 4 * (lanes + column % lanes), &lane.last, 4);
    std::int64_t* wide = data_.data() + block + lanes + column % lanes / 2;
    wide[odd * lanes / 2] = lane.half;
    wide[lanes + odd * lanes / 2] = lane.shift;
  }
}

ScaleBlocksStorage::Lane ScaleBlocksStorage::lane_of(std::int32_t multiplier, std::int32_t shift, std::int32_t zero_point) const {
  const std::int64_t half = multiplier == 0 ? 0 : std::int64_t{1} << (shift - 1);
  if (form_ == ScaleForm::bytes) {
    return {multiplier, shift - 32, half + (std::int64_t{zero_point} + kStored) * (std::int64_t{1} << shift), 0};
  }
  if (form_ == ScaleForm::words) return {multiplier, shift - 32, half, 0};
  if (form_ == ScaleForm::left) return {multiplier, 0, half, 32 - shift};
  const auto lifted = static_cast<std::int64_t>(kLift + static_cast<std::uint64_t>(half));
  return {multiplier, static_cast<std::int32_t>(0 - static_cast<std::uint32_t>(kLift >> shift)), lifted, shift};
}

}  // namespace cvm
