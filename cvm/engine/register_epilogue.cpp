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

// A loaded tensor of the result's own size: i32, or i8 rescaled to i32.
bool is_shortcut(const Stages& stages, int reg) {
  int loaded = reg;
  if (stages.is(reg, Opcode::rescale_)) {
    loaded = stages.source(reg);
    if (stages.dtype(reg) != DType::i32 || !stages.is(loaded, Opcode::load_) || stages.dtype(loaded) != DType::i8) return false;
  } else if (!stages.is(reg, Opcode::load_) || stages.dtype(reg) != DType::i32) {
    return false;
  }
  const Operand& operand = stages.step.operands[static_cast<std::size_t>(stages.spec(loaded).operand)];
  return operand.shape == stages.step.result.shape && (operand.dtype == DType::i32 || operand.biased());
}

bool gives_bytes(const Stages& stages, int reg) {
  return stages.is(reg, Opcode::rescale_) && stages.dtype(reg) == DType::i8 && fits_bytes(stages.data(reg));
}

// A rescale of i8 to i32 by 1, which moves the zero point at most.
bool widens(const Stages& stages, int reg) {
  if (!stages.is(reg, Opcode::rescale_) || stages.dtype(reg) != DType::i32 || stages.data(reg).flag) return false;
  const StageData& data = stages.data(reg);
  for (std::size_t i = 0; i < data.multiplier.size(); ++i) {
    if (data.multiplier[i] != 1 << 30 || data.shift[i] != 30) return false;
  }
  return true;
}

}  // namespace

struct RegisterEpilogue::Match {
  const StepCall& call;
  const Stages stages;
  std::span<const std::int64_t> channels;
  const ProductKernels& kernels;

  RegisterEpilogue begin(Form form) const {
    RegisterEpilogue found;
    found.kernels_ = &kernels;
    found.form_ = form;
    found.result_ = call.result();
    return found;
  }

  ScaleBlocksStorage blocks(int reg, ScaleForm form) const {
    return ScaleBlocksStorage(stages.data(reg), channels, kernels.lanes, form);
  }

  ScaleBlocksStorage integer_blocks(int reg) const { return blocks(reg, *integer_form(stages.data(reg))); }

  std::optional<RegisterEpilogue> wide() const {
    if (stages.last() == 1 && scales_sums(stages, 1)) {
      RegisterEpilogue found = begin(Form::wide);
      found.own_ = integer_blocks(1);
      return found;
    }
    const bool two = stages.last() == 2 && gives_bytes(stages, 1) && stages.source(1) == 0;
    if (!two || !widens(stages, 2) || stages.source(2) != 1) return std::nullopt;
    RegisterEpilogue found = begin(Form::wide_bytes);
    found.own_ = blocks(1, ScaleForm::bytes);
    found.add_ = stages.data(2).output_zero_point - stages.data(2).input_zero_point - kStored;
    return found;
  }

  std::optional<RegisterEpilogue> words() const {
    const bool one = stages.last() == 1 && stages.is(1, Opcode::rescale_) && stages.dtype(1) == DType::i16;
    if (!one) return std::nullopt;
    RegisterEpilogue found = begin(Form::words);
    found.high_words_ = fits_bytes(stages.data(1));
    const std::optional<ScaleForm> other = integer_form(stages.data(1));
    if (!found.high_words_ && !other) return std::nullopt;
    found.own_ = blocks(1, found.high_words_ ? ScaleForm::words : *other);
    return found;
  }

  std::optional<RegisterEpilogue> narrow() const {
    RegisterEpilogue found = begin(Form::bytes);
    int last = stages.last();
    if (stages.is(last, Opcode::clamp_)) {
      found.low_ = stages.data(last).low + kStored;
      found.high_ = stages.data(last).high + kStored;
      last = stages.source(last);
    }
    if (!gives_bytes(stages, last)) return std::nullopt;
    const int before = stages.source(last);
    if (before == 0) {
      if (stages.last() > 2) return std::nullopt;
      found.own_ = blocks(last, ScaleForm::bytes);
      return found;
    }
    if (!stages.is(before, Opcode::add_)) return std::nullopt;
    found.last_ = blocks(last, ScaleForm::bytes);
    return with_shortcut(std::move(found), before);
  }

  std::optional<RegisterEpilogue> with_shortcut(RegisterEpilogue found, int sum) const {
    int own = stages.source(sum, 0), other = stages.source(sum, 1);
    if (!scales_sums(stages, own)) std::swap(own, other);
    if (!scales_sums(stages, own) || !is_shortcut(stages, other)) return std::nullopt;
    found.form_ = Form::residual;
    found.own_ = integer_blocks(own);
    int loaded = other;
    if (stages.is(other, Opcode::rescale_)) {
      loaded = stages.source(other);
      std::optional<ByteBlocksStorage> scale = ByteBlocksStorage::make(stages.data(other), channels, kernels.lanes);
      if (!scale) return std::nullopt;
      found.shortcut_scale_ = std::move(*scale);
    }
    found.shortcut_ = call.operand(static_cast<std::size_t>(stages.spec(loaded).operand));
    return found;
  }
};

std::optional<RegisterEpilogue> RegisterEpilogue::match(const StepCall& call, const Chain& chain,
                                                        std::span<const std::int64_t> channels,
                                                        const ProductKernels& kernels) {
  const Match match{call, Stages{call.spec, chain}, channels, kernels};
  if (call.operand(0).dtype != DType::i8 || match.stages.last() == 0) return std::nullopt;
  if (call.result().dtype == DType::i32) return match.wide();
  if (call.result().dtype == DType::i16) return match.words();
  return call.result().biased() ? match.narrow() : std::nullopt;
}

void RegisterEpilogue::run(const ProductTask& task, const Buffers& buffers, std::int64_t row, std::int64_t channel,
                           std::int64_t column, std::int64_t columns) const {
  std::byte* result = buffers.write(result_) + (row * result_.pitch + channel) * size_of(result_.dtype);
  if (form_ == Form::wide || form_ == Form::wide_bytes) {
    const ToWide out{own_.at(column), form_ == Form::wide_bytes, low_, high_, add_};
    kernels_->wide8(task, out, columns, reinterpret_cast<std::int32_t*>(result), result_.pitch);
    return;
  }
  if (form_ == Form::words) {
    kernels_->words8(task, {own_.at(column), high_words_}, columns, reinterpret_cast<std::int16_t*>(result), result_.pitch);
    return;
  }
  auto* to = reinterpret_cast<std::uint8_t*>(result);
  if (form_ == Form::bytes) {
    kernels_->bytes8(task, {own_.at(column), low_, high_}, columns, to, result_.pitch);
    return;
  }
  const bool is_wide = shortcut_.dtype == DType::i32;
  const std::int64_t start = (row * shortcut_.pitch + channel) * size_of(shortcut_.dtype);
  const Residual residual{own_.at(column),     is_wide ? ByteBlocks{nullptr, 0} : shortcut_scale_.at(column),
                          buffers.read(shortcut_) + start, shortcut_.pitch, is_wide, {last_.at(column), low_, high_}};
  kernels_->residual8(task, residual, columns, to, result_.pitch);
}

}  // namespace cvm
