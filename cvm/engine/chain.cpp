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
void load_rows(const Tile& tile, const TileOperand& operand, std::int32_t* out) {
  const T* base = reinterpret_cast<const T*>(operand.data);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const T* from = base + row * operand.row_stride;
    std::int32_t* to = out + row * tile.width;
    if (operand.column_stride == 0) {
      std::fill_n(to, tile.width, static_cast<std::int32_t>(*from));
    } else {
      for (std::int64_t i = 0; i < tile.width; ++i) to[i] = static_cast<std::int32_t>(from[i]);
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
void Chain::assign_slots(const StepSpec& step, bool has_accumulator) {
  const int first = has_accumulator ? 1 : 0;
  const int count = first + static_cast<int>(step.stages.size());
  std::vector<int> last_read(static_cast<std::size_t>(count), -1), slot(static_cast<std::size_t>(count), 0);
  for (int stage = 0; stage < count - first; ++stage) {
    for (int source : step.stages[static_cast<std::size_t>(stage)].sources)
      last_read[static_cast<std::size_t>(source)] = stage;
  }
  std::vector<bool> taken(1, has_accumulator);
  for (int stage = 0; stage < count - first; ++stage) {
    Link& link = links_[static_cast<std::size_t>(stage)];
    const auto& sources = step.stages[static_cast<std::size_t>(stage)].sources;
    for (std::size_t i = 0; i < sources.size(); ++i) link.sources[i] = slot[static_cast<std::size_t>(sources[i])];
    for (int source : sources) {
      const auto place = static_cast<std::size_t>(source);
      if (last_read[place] == stage) taken[static_cast<std::size_t>(slot[place])] = false;
    }
    auto free = std::find(taken.begin(), taken.end(), false);
    if (free == taken.end()) free = taken.insert(taken.end(), false);
    *free = true;
    link.result = static_cast<int>(free - taken.begin());
    slot[static_cast<std::size_t>(first + stage)] = link.result;
  }
  slots_ = static_cast<int>(taken.size());
  result_slot_ = slot.back();
}

void Chain::run(const Tile& tile, std::span<const TileOperand> operands, std::byte* result, std::int64_t pitch,
                std::byte* scratch) const {
  const auto at = [scratch](int slot) { return accumulator(scratch) + (slot < 0 ? 0 : slot) * kTileElements; };
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const Link& link = links_[i];
    if (link.operand >= 0) {
      load(link, stages_[i], tile, operands[static_cast<std::size_t>(link.operand)], at(link.result));
    } else {
      stages_[i].body(stages_[i].data, tile, at(link.sources[0]), at(link.sources[1]), at(link.sources[2]),
                      at(link.result));
    }
  }
  store(tile, at(result_slot_), result, pitch);
}

void Chain::load(const Link& link, const Stage& stage, const Tile& tile, const TileOperand& operand,
                 std::int32_t* out) const {
  const bool repeated = operand.column_stride == 0;
  switch (stage.dtype) {
    case DType::i32:
      return load_rows<std::int32_t>(tile, operand, out);
    case DType::i16:
      if (repeated) return load_rows<std::int16_t>(tile, operand, out);
      for (std::int64_t row = 0; row < tile.rows; ++row) {
        kernels_->elements->load16(tile.width,
                                   reinterpret_cast<const std::int16_t*>(operand.data) + row * operand.row_stride,
                                   out + row * tile.width);
      }
      return;
    case DType::i8:
      if (link.bias == 0) return load_rows<std::int8_t>(tile, operand, out);
      break;
    default:
      break;
  }
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(operand.data) + row * operand.row_stride;
    std::int32_t* to = out + row * tile.width;
    if (repeated) {
      std::fill_n(to, tile.width, *from - link.bias);
    } else {
      kernels_->elements->load8(link.bias, tile.width, from, to);
    }
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
