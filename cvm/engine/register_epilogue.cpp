// Matches chains, and calls the kernels that finish in registers.
#include "register_epilogue.h"

#include <algorithm>

namespace cvm {
namespace {

constexpr std::int32_t kStored = 128;  // what stored i8 bytes are more than their integers

// A chain of one step by registers: 0 is the accumulator, stage i defines i + 1.
struct Stages {
  const StepSpec& step;
  const Chain& chain;

  const StageSpec& spec(int reg) const { return step.stages[static_cast<std::size_t>(reg - 1)]; }
  const StageData& data(int reg) const { return chain.stages()[static_cast<std::size_t>(reg - 1)].data; }
  bool is(int reg, Opcode opcode) const { return reg >= 1 && spec(reg).opcode == opcode; }
  int source(int reg, std::size_t index = 0) const { return spec(reg).sources[index]; }
  DType dtype(int reg) const { return chain.stages()[static_cast<std::size_t>(reg - 1)].dtype; }
  int last() const { return static_cast<int>(step.stages.size()); }
};

// A rescale to i32 of the accumulator.
bool scales_sums(const Stages& stages, int reg) {
  return stages.is(reg, Opcode::rescale_) && stages.source(reg) == 0 && stages.dtype(reg) == DType::i32 &&
         integer_form(stages.data(reg));
}

// A loaded tensor of the result's own size: i32, or i8 rescaled per tensor to i32.
bool is_shortcut(const Stages& stages, int reg) {
  int loaded = reg;
  if (stages.is(reg, Opcode::rescale_)) {
    const StageData& data = stages.data(reg);
    if (stages.dtype(reg) != DType::i32 || !byte_scale(data)) return false;
    loaded = stages.source(reg);
    if (!stages.is(loaded, Opcode::load_) || stages.dtype(loaded) != DType::i8) return false;
  } else if (!stages.is(reg, Opcode::load_) || stages.dtype(reg) != DType::i32) {
    return false;
  }
  const Operand& operand = stages.step.operands[static_cast<std::size_t>(stages.spec(loaded).operand)];
  return operand.shape == stages.step.result.shape && (operand.dtype == DType::i32 || operand.biased());
}

}  // namespace

std::optional<RegisterEpilogue> RegisterEpilogue::match(const StepCall& call, const Chain& chain,
                                                        std::span<const std::int64_t> channels,
                                                        const ProductKernels& kernels) {
  const Stages stages{call.spec, chain};
  if (call.operand(0).dtype != DType::i8 || !call.result().biased() || stages.last() == 0) return std::nullopt;
  RegisterEpilogue found;
  found.kernels_ = &kernels;
  found.result_ = call.result();
  int reg = stages.last();
  if (stages.is(reg, Opcode::clamp_)) {
    found.low_ = stages.data(reg).low + kStored;
    found.high_ = stages.data(reg).high + kStored;
    reg = stages.source(reg);
  }
  if (!stages.is(reg, Opcode::rescale_) || !fits_bytes(stages.data(reg)) || stages.dtype(reg) != DType::i8) {
    return std::nullopt;
  }
  const StageData& to_bytes = stages.data(reg);
  const int before = stages.source(reg);
  if (before == 0) {
    if (stages.last() > 2) return std::nullopt;
    found.own_ = ScaleBlocksStorage(to_bytes, channels, kernels.lanes, ScaleForm::bytes);
    return found;
  }
  if (!stages.is(before, Opcode::add_) || to_bytes.multiplier.size() != 1) return std::nullopt;
  int own = stages.source(before, 0), other = stages.source(before, 1);
  if (!scales_sums(stages, own)) std::swap(own, other);
  if (!scales_sums(stages, own) || !is_shortcut(stages, other)) return std::nullopt;
  found.has_shortcut_ = true;
  found.own_ = ScaleBlocksStorage(stages.data(own), channels, kernels.lanes, *integer_form(stages.data(own)));
  found.last_ = ScaleBlocksStorage(to_bytes, kernels.lanes, ScaleForm::bytes);
  int loaded = other;
  if (stages.is(other, Opcode::rescale_)) {
    loaded = stages.source(other);
    found.shortcut_scale_ = *byte_scale(stages.data(other));
  }
  found.shortcut_ = call.operand(static_cast<std::size_t>(stages.spec(loaded).operand));
  return found;
}

void RegisterEpilogue::run(const ProductTask& task, const Buffers& buffers, std::int64_t row, std::int64_t channel,
                           std::int64_t column, std::int64_t columns) const {
  auto* to = reinterpret_cast<std::uint8_t*>(buffers.write(result_)) + row * result_.pitch + channel;
  if (!has_shortcut_) {
    kernels_->bytes8(task, {own_.at(column), low_, high_}, columns, to, result_.pitch);
    return;
  }
  const std::int64_t start = (row * shortcut_.pitch + channel) * size_of(shortcut_.dtype);
  const Residual residual{own_.at(column), shortcut_scale_, buffers.read(shortcut_) + start,
                          shortcut_.pitch, shortcut_.dtype == DType::i32, {last_.at(0), low_, high_}};
  kernels_->residual8(task, residual, columns, to, result_.pitch);
}

}  // namespace cvm
