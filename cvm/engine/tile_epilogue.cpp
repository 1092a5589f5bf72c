// Lays out what the kernels that finish tiles read.
#include "tile_epilogue.h"

#include <numeric>

namespace cvm {
namespace {

// All channels in order; the last vector is filled up with -1, for none.
std::vector<std::int64_t> all_channels(std::int64_t count, std::int64_t lanes) {
  std::vector<std::int64_t> channels(static_cast<std::size_t>(count));
  std::iota(channels.begin(), channels.end(), std::int64_t{0});
  channels.resize(static_cast<std::size_t>((count + lanes - 1) / lanes * lanes), -1);
  return channels;
}

}  // namespace

std::optional<TileEpilogue> TileEpilogue::make(const StepCall& call, const EpilogueForm& form) {
  const std::optional<ScaleForm> last = form.final_form();
  const Operand& result = call.result();
  if (call.kernels.finish->store == nullptr || !last || (result.dtype == DType::i8 && !result.biased())) return std::nullopt;
  TileEpilogue epilogue;
  epilogue.kernels_ = call.kernels.finish;
  epilogue.lanes_ = call.kernels.products->lanes;
  epilogue.result_ = result;
  const std::vector<std::int64_t> channels = all_channels(result.shape.last(), epilogue.lanes_);
  epilogue.last_ = ScaleBlocksStorage(form.final_scale(), channels, epilogue.lanes_, *last);
  // In the forms of bytes, kernels add the zero point and the 128 of stored bytes; in the other forms they add neither.
  const std::int32_t zero_point = form.final_scale().output_zero_point;
  const std::int32_t kernel_offset = gives_bytes(*last) ? zero_point + kStored : 0;
  const std::int32_t result_offset = zero_point + (form.moved ? *form.moved : result.dtype == DType::i8 ? kStored : 0);
  epilogue.low_ = form.low - zero_point + kernel_offset, epilogue.high_ = form.high - zero_point + kernel_offset;
  epilogue.add_ = result_offset - kernel_offset;
  if (form.shortcut && !epilogue.add_shortcut(call, form, channels)) return std::nullopt;
  return epilogue;
}

bool TileEpilogue::add_shortcut(const StepCall& call, const EpilogueForm& form, std::span<const std::int64_t> channels) {
  shortcut_ = call.operand(form.shortcut->operand);
  if (shortcut_->dtype != DType::i16) shifted_ = ShiftBlocksStorage::make(form.own, form.shortcut->scale, channels, lanes_);
  if (shifted_) return true;
  own_ = ScaleBlocksStorage(form.own, channels, lanes_, *integer_form(form.own));
  if (!form.shortcut->scale) return true;
  const StageData& scale = *form.shortcut->scale;
  if (shortcut_->dtype == DType::i16) {
    shortcut_words_ = ScaleBlocksStorage(scale, channels, lanes_, *integer_form(scale));
    return true;
  }
  std::optional<ByteBlocksStorage> bytes = ByteBlocksStorage::make(scale, channels, lanes_);
  if (bytes) shortcut_bytes_ = std::move(*bytes);
  return bytes.has_value();
}

void TileEpilogue::run(const Buffers& buffers, std::int64_t row, const Tile& tile, std::int32_t* sums) const {
  const SumTile task{sums, tile.width, tile.rows, tile.width};
  const auto place = [&](const Operand& operand) { return (row * operand.pitch + tile.channel) * size_of(operand.dtype); };
  if (shortcut_) {
    const std::byte* from = buffers.read(*shortcut_) + place(*shortcut_);
    const Shortcut shortcut{from, shortcut_->pitch, size_of(shortcut_->dtype), shortcut_bytes_.at(tile.channel),
                            shortcut_words_.at(tile.channel), shifted_ ? shifted_->at(tile.channel) : ShiftBlocks{nullptr, 0}};
    kernels_->add_shortcut(task, own_.at(tile.channel), shortcut);
  }
  const Finish finish{last_.at(tile.channel), low_, high_, add_, size_of(result_.dtype)};
  kernels_->store(task, finish, buffers.write(result_) + place(result_), result_.pitch);
}

}  // namespace cvm
