// Calls the kernels that finish in registers.
#include "register_epilogue.h"

namespace cvm {
namespace {

// Whether product kernels have the form. They have most of the forms that TileEpilogue takes, but not all.
bool has_kernel(const StepCall& call, const EpilogueForm& form, const ProductKernels& kernels) {
  const bool words = call.operand(0).dtype == DType::i16;
  if (!form.final_form() || (words ? kernels.words16 : kernels.words8) == nullptr) return false;
  if (words && (form.shortcut || call.result().dtype == DType::i32)) return false;
  if (form.narrow == DType::i8 && !gives_bytes(*form.final_form())) return false;
  const DType result = call.result().dtype;
  if (form.shortcut) return call.result().biased() && call.operand(form.shortcut->operand).dtype != DType::i16;
  if (result == DType::i8) return call.result().biased();
  if (form.narrow == DType::i32) return !form.clamps();
  return form.narrow == (form.moved ? DType::i8 : DType::i16);
}

void add_odd_biases(const StageData& rescale, std::span<const std::int64_t> channels, std::span<std::int32_t> biases) {
  for (std::size_t column = 0; column < channels.size(); ++column) {
    if (channels[column] < 0) continue;
    const std::size_t place = rescale.multiplier.size() == 1 ? 0 : static_cast<std::size_t>(channels[column]);
    const auto added = static_cast<std::uint32_t>(odd_bias(rescale, place));
    biases[column] = static_cast<std::int32_t>(static_cast<std::uint32_t>(biases[column]) + added);
  }
}

}  // namespace

std::optional<RegisterEpilogue> RegisterEpilogue::make(const StepCall& call, const EpilogueForm& form,
                                                       std::span<const std::int64_t> channels, const ProductKernels& kernels,
                                                       std::span<std::int32_t> biases) {
  if (!has_kernel(call, form, kernels)) return std::nullopt;
  RegisterEpilogue epilogue;
  epilogue.kernels_ = &kernels;
  epilogue.words_ = call.operand(0).dtype == DType::i16;
  epilogue.result_ = call.result();
  if (form.shortcut && !epilogue.add_shortcut(call, form, channels)) return std::nullopt;
  ScaleForm last = *form.final_form();
  // With a shortcut, kernels have short bytes only where the sums are shifted.
  if (last == ScaleForm::short_bytes && form.shortcut && !epilogue.shifted_) {
    if (!fits_bytes(form.final_scale())) return std::nullopt;
    last = ScaleForm::bytes;
  }
  if (last == ScaleForm::short_bytes && !form.shortcut && kernels.odd_bytes && fits_odd_bytes(form.final_scale())) {
    last = ScaleForm::odd_bytes;
    add_odd_biases(form.final_scale(), channels, biases);
  }
  if (kernels.halves && !form.shortcut && !form.moved && fits_halves(form.final_scale())) {
    if (last == ScaleForm::bytes) last = ScaleForm::half_bytes;
    if (last == ScaleForm::words) last = ScaleForm::half_words;
  }
  std::vector<std::int32_t> constants;
  if (last == ScaleForm::short_bytes && form.shortcut) constants = epilogue.shifted_->take_constants();
  const std::int32_t bias = gives_bytes(last) ? kStored : 0;
  epilogue.low_ = form.low + bias, epilogue.high_ = form.high + bias;
  if (form.moved) epilogue.add_ = *form.moved - bias;
  (form.shortcut ? epilogue.last_ : epilogue.own_) = ScaleBlocksStorage(form.final_scale(), channels, kernels.lanes, last, constants);
  return epilogue;
}

std::optional<RegisterEpilogue> RegisterEpilogue::first_stage(const StepCall& call, const Stage& rescale,
                                                              std::span<const std::int64_t> channels,
                                                              const ProductKernels& kernels) {
  RegisterEpilogue epilogue;
  epilogue.kernels_ = &kernels;
  epilogue.words_ = call.operand(0).dtype == DType::i16;
  const bool halves = kernels.halves && fits_halves(rescale.data);
  const std::optional<ScaleForm> form = halves                      ? ScaleForm::half_words
                                        : fits_bytes(rescale.data) ? ScaleForm::words
                                                                   : integer_form(rescale.data);
  if (!form || (epilogue.words_ ? kernels.words16 : kernels.words8) == nullptr) return std::nullopt;
  epilogue.low_ = rescale.data.low, epilogue.high_ = rescale.data.high;
  epilogue.own_ = ScaleBlocksStorage(rescale.data, channels, kernels.lanes, *form);
  return epilogue;
}

void RegisterEpilogue::to_words(const ProductTask& task, std::int64_t column, std::int64_t columns, std::int16_t* to) const {
  (words_ ? kernels_->words16 : kernels_->words8)(task, {own_.at(column), low_, high_}, columns, to, columns);
}

bool RegisterEpilogue::add_shortcut(const StepCall& call, const EpilogueForm& form, std::span<const std::int64_t> channels) {
  shortcut_ = call.operand(form.shortcut->operand);
  shifted_ = ShiftBlocksStorage::make(form.own, form.shortcut->scale, channels, kernels_->lanes);
  if (shifted_) return true;
  own_ = ScaleBlocksStorage(form.own, channels, kernels_->lanes, *integer_form(form.own));
  if (!form.shortcut->scale) return true;
  std::optional<ByteBlocksStorage> scale = ByteBlocksStorage::make(*form.shortcut->scale, channels, kernels_->lanes);
  if (scale) shortcut_scale_ = std::move(*scale);
  return scale.has_value();
}

void RegisterEpilogue::to_wide(const ProductTask& task, std::int64_t column, std::int64_t columns, std::int32_t* to,
                               std::int64_t pitch) const {
  kernels_->wide8(task, {own_.at(column), low_, high_, add_}, columns, to, pitch);
}

void RegisterEpilogue::run(const ProductTask& task, const Buffers& buffers, std::int64_t row, std::int64_t channel,
                           std::int64_t column, std::int64_t columns, const std::int32_t* passed) const {
  std::byte* result = buffers.write(result_) + (row * result_.pitch + channel) * size_of(result_.dtype);
  if (gives_wide()) return to_wide(task, column, columns, reinterpret_cast<std::int32_t*>(result), result_.pitch);
  if (result_.dtype == DType::i16) {
    const ToWords out{own_.at(column), low_, high_};
    const auto words = words_ ? kernels_->words16 : kernels_->words8;
    return words(task, out, columns, reinterpret_cast<std::int16_t*>(result), result_.pitch);
  }
  auto* to = reinterpret_cast<std::uint8_t*>(result);
  const auto bytes = words_ ? kernels_->bytes16 : kernels_->bytes8;
  if (!shortcut_) return bytes(task, {own_.at(column), low_, high_}, columns, to, result_.pitch);
  const bool is_wide = shortcut_->dtype == DType::i32;
  const std::int64_t start = (row * shortcut_->pitch + channel) * size_of(shortcut_->dtype);
  const Residual residual{own_.at(column), is_wide ? ByteBlocks{nullptr, 0} : shortcut_scale_.at(column),
                          passed == nullptr ? static_cast<const void*>(buffers.read(*shortcut_) + start) : passed,
                          passed == nullptr ? shortcut_->pitch : columns, is_wide,
                          shifted_ ? shifted_->at(column) : ShiftBlocks{nullptr, 0}, {last_.at(column), low_, high_}};
  kernels_->residual8(task, residual, columns, to, result_.pitch);
}

}  // namespace cvm
