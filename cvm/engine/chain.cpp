// Builds and runs chains of stages.
#include "chain.h"

#include <algorithm>

namespace cvm {
namespace {

using Maker = Expected<Stage> (*)(const StageCall&);

Maker maker_of(Opcode opcode) {
  switch (opcode) {
#define CVM_CASE(name, number) \
  case Opcode::name##_:        \
    return make_stage_##name;
    CVM_STAGES(CVM_CASE)
#undef CVM_CASE
    default:
      return nullptr;
  }
}

std::int32_t bias_of(const Operand& operand) { return operand.biased() ? 128 : 0; }

template <typename T>
void load_rows(const ElementKernels& kernels, const Tile& tile, const TileOperand& operand, std::int32_t* out) {
  const T* base = reinterpret_cast<const T*>(operand.data);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const T* from = base + row * operand.row_stride;
    std::int32_t* to = out + row * tile.width;
    if (operand.column_stride == 0) {
      kernels.fill(static_cast<std::int32_t>(*from), tile.width, to);
    } else {
      std::copy_n(from, tile.width, to);
    }
  }
}

}  // namespace

Expected<Chain> Chain::make(const StepSpec& step, std::span<const Constant> constants, const Kernels& kernels,
                            bool has_accumulator) {
  Chain chain;
  chain.kernels_ = &kernels;
  std::vector<DType> dtypes;
  if (has_accumulator) dtypes.push_back(DType::i32);
  CVM_REQUIRE(step.stages.size() <= kMaxStages, "too many stages");
  CVM_REQUIRE(step.operands.size() <= kMaxLoads, "too many operands");
  for (const StageSpec& spec : step.stages) {
    const Problem problem = chain.add(spec, step, constants, dtypes);
    CVM_REQUIRE(problem.empty(), std::string(name_of(spec.opcode) ? name_of(spec.opcode) : "stage") + ": " + problem);
  }
  CVM_REQUIRE(!dtypes.empty(), "a chain without stages");
  CVM_REQUIRE(dtypes.back() == step.result.dtype, "the last stage's dtype is not the result's");
  chain.result_dtype_ = step.result.dtype;
  chain.result_bias_ = bias_of(step.result);
  chain.assign_slots(step, has_accumulator);
  return chain;
}

Problem Chain::add(const StageSpec& spec, const StepSpec& step, std::span<const Constant> constants,
                   std::vector<DType>& dtypes) {
  std::vector<DType> sources;
  CVM_REQUIRE(spec.sources.size() <= 3, "more than three sources");
  for (int source : spec.sources) {
    CVM_REQUIRE(source >= 0 && static_cast<std::size_t>(source) < dtypes.size(), "a source is not an earlier register");
    sources.push_back(dtypes[static_cast<std::size_t>(source)]);
  }
  for (std::int64_t number : spec.parameters) {
    CVM_REQUIRE(number >= 0 && number < static_cast<std::int64_t>(constants.size()), "a parameter is not a constant");
  }
  Link link;
  if (spec.opcode == Opcode::load_) {
    CVM_REQUIRE(spec.operand >= 0 && static_cast<std::size_t>(spec.operand) < step.operands.size() &&
                    spec.sources.empty() && spec.parameters.empty(),
                "does not name one of the step's operands");
    const Operand& operand = step.operands[static_cast<std::size_t>(spec.operand)];
    link.operand = spec.operand;
    link.bias = bias_of(operand);
    Stage stage;
    stage.dtype = operand.dtype;
    stages_.push_back(std::move(stage));
  } else {
    const Maker maker = maker_of(spec.opcode);
    CVM_REQUIRE(maker != nullptr, "not a stage");
    Expected<Stage> made = maker({spec, sources, constants, step.result.shape.last(), *kernels_});
    if (!made) return made.problem();
    stages_.push_back(std::move(*made));
  }
  links_.push_back(link);
  dtypes.push_back(stages_.back().dtype);
  return {};
}

// A register's slot is free again after the last stage that reads it, so that tiles stay few and in the nearest cache.
// What is the same as its source shares that one's slot.
void Chain::assign_slots(const StepSpec& step, bool has_accumulator) {
  first_ = has_accumulator ? 1 : 0;
  const std::size_t count = first_ + step.stages.size();
  std::vector<std::size_t> root(count), last_read(count, 0);
  std::vector<int> slot(count, 0);
  for (std::size_t stage = 0; stage < step.stages.size(); ++stage) {
    const auto& sources = step.stages[stage].sources;
    const std::size_t reg = first_ + stage;
    root[reg] = stages_[stage].same ? root[static_cast<std::size_t>(sources[0])] : reg;
    for (int source : sources) last_read[root[static_cast<std::size_t>(source)]] = stage + 1;
  }
  std::vector<bool> taken(first_, true);
  for (std::size_t stage = 0; stage < step.stages.size(); ++stage) {
    const auto& sources = step.stages[stage].sources;
    std::copy(sources.begin(), sources.end(), links_[stage].sources);
    for (int source : sources) {
      const std::size_t place = root[static_cast<std::size_t>(source)];
      if (last_read[place] == stage + 1) taken[static_cast<std::size_t>(slot[place])] = false;
    }
    if (stages_[stage].same) continue;
    auto free = std::find(taken.begin(), taken.end(), false);
    if (free == taken.end()) free = taken.insert(taken.end(), false);
    *free = true;
    slot[first_ + stage] = links_[stage].slot = static_cast<int>(free - taken.begin());
  }
  slots_ = std::max(1, static_cast<int>(taken.size()));
}

void Chain::run(const Tile& tile, std::span<const TileOperand> operands, std::byte* result, std::int64_t pitch,
                std::byte* scratch) const {
  const std::int32_t* registers[kMaxStages + 1] = {accumulator(scratch)};
  const bool direct = result_dtype_ == DType::i32 && (pitch == tile.width || tile.rows == 1);
  auto* whole = reinterpret_cast<std::int32_t*>(result);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const Link& link = links_[i];
    const auto source = [&](int place) { return registers[link.sources[place]]; };
    std::int32_t* out = direct && i + 1 == stages_.size() ? whole : accumulator(scratch) + link.slot * kTileElements;
    const std::int32_t*& found = registers[first_ + i];
    if (link.operand >= 0) {
      found = load(link, stages_[i], tile, operands[static_cast<std::size_t>(link.operand)], out);
    } else if (stages_[i].same) {
      found = source(0);
    } else {
      stages_[i].body(stages_[i].data, tile, source(0), source(1), source(2), out);
      found = out;
    }
  }
  const std::int32_t* last = registers[first_ + stages_.size() - 1];
  if (last != whole) store(tile, last, result, pitch);
}

const std::int32_t* Chain::load(const Link& link, const Stage& stage, const Tile& tile, const TileOperand& operand,
                                std::int32_t* out) const {
  const bool repeated = operand.column_stride == 0;
  const bool as_it_is = !repeated && (operand.row_stride == tile.width || tile.rows == 1);
  if (stage.dtype == DType::i32 && as_it_is) return reinterpret_cast<const std::int32_t*>(operand.data);
  if (stage.dtype == DType::i32) {
    load_rows<std::int32_t>(*kernels_->elements, tile, operand, out);
  } else if (stage.dtype == DType::i16 && repeated) {
    load_rows<std::int16_t>(*kernels_->elements, tile, operand, out);
  } else if (stage.dtype == DType::i8 && link.bias == 0) {
    load_rows<std::int8_t>(*kernels_->elements, tile, operand, out);
  } else {
    for (std::int64_t row = 0; row < tile.rows; ++row) load_row(link, stage, tile.width, operand, row, out);
  }
  return out;
}

// A row of 16-bit integers, or of bytes.
void Chain::load_row(const Link& link, const Stage& stage, std::int64_t width, const TileOperand& operand, std::int64_t row,
                     std::int32_t* out) const {
  const std::byte* from = operand.data + row * operand.row_stride * size_of(stage.dtype);
  std::int32_t* to = out + row * width;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  if (stage.dtype == DType::i16) {
    kernels_->elements->load16(width, reinterpret_cast<const std::int16_t*>(from), to);
  } else if (operand.column_stride == 0) {
    kernels_->elements->fill(*bytes - link.bias, width, to);
  } else {
    kernels_->elements->load8(link.bias, width, bytes, to);
  }
}

void Chain::store(const Tile& tile, const std::int32_t* x, std::byte* result, std::int64_t pitch) const {
  for (std::int64_t row = 0; row < tile.rows; ++row, x += tile.width) {
    std::byte* to = result + row * pitch * size_of(result_dtype_);
    if (result_dtype_ == DType::i32) {
      std::copy_n(x, tile.width, reinterpret_cast<std::int32_t*>(to));
    } else if (result_dtype_ == DType::i16) {
      kernels_->elements->store16(tile.width, x, reinterpret_cast<std::int16_t*>(to));
    } else {
      kernels_->elements->store8(result_bias_, tile.width, x, reinterpret_cast<std::uint8_t*>(to));
    }
  }
}

}  // namespace cvm
