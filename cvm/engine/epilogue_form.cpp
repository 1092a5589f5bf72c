// Reads a chain from its result back to the sums.
#include "epilogue_form.h"

namespace cvm {
namespace {

StageData power_of_two(std::int32_t shift) {
  StageData rescale;
  rescale.multiplier = {1 << kOneShift};
  rescale.shift = {shift};
  return rescale;
}

// Reads the chain of one step by registers: register 0 is the accumulator, and stage i defines register i + 1. Where
// joined stages come first, their result stands for the accumulator.
class Reader {
 public:
  Reader(const StepCall& call, const Chain& chain) : call_(call), chain_(chain), sums_(static_cast<int>(chain.front())) {}

  std::optional<EpilogueForm> read() {
    int reg = static_cast<int>(call_.spec.stages.size());
    if (reg == sums_) return std::nullopt;
    if (widens(reg)) {
      form_.moved = data(reg).output_zero_point - data(reg).input_zero_point;
      reg = take(reg);
    }
    form_.narrow = dtype(reg);
    form_.low = static_cast<std::int32_t>(lowest(form_.narrow)), form_.high = static_cast<std::int32_t>(highest(form_.narrow));
    if (is(reg, Opcode::clamp_)) {
      form_.low = data(reg).low, form_.high = data(reg).high;
      reg = take(reg);
    }
    const bool matches = read_sum(reg) || (is(reg, Opcode::rescale_) && (read_last(reg) || read_only(reg)));
    if (form_.shortcut && !form_.last) form_.last = power_of_two(kOneShift);
    return matches && taken_ + chain_.front() == call_.spec.stages.size() ? std::optional(form_) : std::nullopt;
  }

 private:
  const StageSpec& spec(int reg) const { return call_.spec.stages[static_cast<std::size_t>(reg - 1)]; }
  const StageData& data(int reg) const { return chain_.stages()[static_cast<std::size_t>(reg - 1)].data; }
  DType dtype(int reg) const { return reg == 0 ? DType::i32 : chain_.stages()[static_cast<std::size_t>(reg - 1)].dtype; }
  bool is(int reg, Opcode opcode) const { return reg >= 1 && spec(reg).opcode == opcode; }
  int source(int reg, std::size_t index = 0) const { return spec(reg).sources[index]; }
  const Operand& operand(int load) const { return call_.operand(static_cast<std::size_t>(spec(load).operand)); }

  // Counts a stage as part of the form. Returns its source, or the stage itself if it is a load.
  int take(int reg) {
    ++taken_;
    return is(reg, Opcode::load_) ? reg : source(reg);
  }

  // A rescale of i8 or i16 to i32 by 1, which moves the zero point at most.
  bool widens(int reg) const {
    if (!is(reg, Opcode::rescale_) || dtype(reg) != DType::i32 || data(reg).flag) return false;
    if (dtype(source(reg)) != DType::i8 && dtype(source(reg)) != DType::i16) return false;
    for (std::size_t i = 0; i < data(reg).multiplier.size(); ++i) {
      if (data(reg).multiplier[i] != 1 << kOneShift || data(reg).shift[i] != kOneShift) return false;
    }
    return !is(source(reg), Opcode::load_);
  }

  // The form with one rescale, that of the sums.
  bool read_only(int reg) {
    if (source(reg) != sums_ || data(reg).input_zero_point != 0) return false;
    form_.own = data(reg);
    take(reg);
    return true;
  }

  bool read_last(int reg) {
    if (!is(source(reg), Opcode::add_) || !read_sum(source(reg))) return false;
    form_.last = data(reg);
    take(reg);
    return true;
  }

  // The sum of own and shortcut, in either order; or own alone, unless it is a rescale to fewer bits than i32.
  bool read_sum(int reg) {
    if (!is(reg, Opcode::add_)) return read_own(reg);
    int own = source(reg, 0), shortcut = source(reg, 1);
    if (is_shortcut(own)) std::swap(own, shortcut);
    if (!is_shortcut(shortcut) || !read_own(own)) return false;
    read_shortcut(shortcut);
    take(reg);
    return true;
  }

  // The sums as integers of i32 that never had to fit fewer bits.
  bool read_own(int reg) {
    if (reg == sums_) {
      form_.own = power_of_two(kOneShift);
      return true;
    }
    if (reg < sums_) return false;  // the accumulator itself, from which joined stages made the sums
    if (source_count(reg) == 0 || source(reg) != sums_ || dtype(reg) != DType::i32) return false;
    if (is(reg, Opcode::rescale_)) {
      if (!integer_form(data(reg)) || data(reg).input_zero_point != 0) return false;
      form_.own = data(reg);
    } else {
      const std::optional<std::int32_t> shift = shift_of(reg);
      if (!shift) return false;
      form_.own = power_of_two(kOneShift + *shift);
      ++taken_;  // the amount that is loaded
    }
    take(reg);
    return true;
  }

  std::size_t source_count(int reg) const { return spec(reg).sources.size(); }

  // How far to the right a stage shifts the sums, if it does so by one constant and a rescale rounds as it does.
  std::optional<std::int32_t> shift_of(int reg) const {
    const bool is_left = is(reg, Opcode::shift_left_);
    if (!is_left && !(is(reg, Opcode::shift_right_) && data(reg).flag)) return std::nullopt;
    const int amount = source(reg, 1);
    if (!is(amount, Opcode::load_) || operand(amount).room != Room::constant) return std::nullopt;
    if (operand(amount).dtype != DType::i32 || operand(amount).shape.elements() != 1) return std::nullopt;
    const std::int32_t bits = call_.constants[static_cast<std::size_t>(operand(amount).position)].as<std::int32_t>()[0];
    if (bits < 0 || bits > (is_left ? 28 : 31)) return std::nullopt;
    return is_left ? -bits : bits;
  }

  // Whether this is a loaded tensor of the result's own shape: of i32, or of another dtype and rescaled to i32.
  bool is_shortcut(int reg) const {
    const bool scaled = is(reg, Opcode::rescale_);
    const int load = scaled ? source(reg) : reg;
    if (!is(load, Opcode::load_) || !(operand(load).shape == call_.result().shape)) return false;
    if (!scaled) return operand(load).dtype == DType::i32;
    if (dtype(reg) != DType::i32 || !integer_form(data(reg))) return false;
    return operand(load).biased() || operand(load).dtype == DType::i16;
  }

  void read_shortcut(int reg) {
    form_.shortcut.emplace();
    if (is(reg, Opcode::rescale_)) {
      form_.shortcut->scale = data(reg);
      reg = take(reg);
    }
    form_.shortcut->operand = static_cast<std::size_t>(spec(reg).operand);
    take(reg);
  }

  const StepCall& call_;
  const Chain& chain_;
  EpilogueForm form_;
  int sums_;  // register
  std::size_t taken_ = 0;  // stages
};

}  // namespace

std::optional<EpilogueForm> EpilogueForm::match(const StepCall& call, const Chain& chain) { return Reader(call, chain).read(); }

std::optional<ScaleForm> EpilogueForm::final_form() const {
  if (narrow == DType::i8 && !moved && fits_short_bytes(final_scale())) return ScaleForm::short_bytes;
  if (narrow != DType::i32 && fits_bytes(final_scale())) return narrow == DType::i8 ? ScaleForm::bytes : ScaleForm::words;
  return integer_form(final_scale());
}

}  // namespace cvm
