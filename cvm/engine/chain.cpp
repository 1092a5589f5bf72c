// Builds and runs chains of stages.
#include "chain.h"

#include <algorithm>

#include "joined.h"

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

constexpr std::int32_t kFarthest = 1 << 20;  // zero points that leave a difference from 16 bits far below 32

std::int32_t bias_of(const Operand& operand) { return operand.biased() ? 128 : 0; }

Source dense(const std::int32_t* x, const Tile& tile) {
  return {{reinterpret_cast<const unsigned char*>(x), tile.width, 4}, 0, false};
}

const std::int32_t* integers(const Source& x) { return reinterpret_cast<const std::int32_t*>(x.rows.data); }

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
  chain.first_ = has_accumulator ? 1 : 0;
  chain.fold_zero_points(step, constants);
  StepSpec joined = step;
  chain.join(joined);
  chain.assign_slots(joined);
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
    Expected<Stage> stage = maker({spec, sources, constants, step.result.shape.last(), *kernels_});
    if (!stage) return stage.problem();
    stages_.push_back(std::move(*stage));
  }
  links_.push_back(link);
  dtypes.push_back(stages_.back().dtype);
  return {};
}

// rescale(x - c), where c is a constant of each channel, is a rescale of x with zero points.
void Chain::fold_zero_points(const StepSpec& step, std::span<const Constant> constants) {
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    if (!takes_zero_points(step, stage, constants)) continue;
    const auto difference = static_cast<std::size_t>(step.stages[stage].sources[0]) - first_;
    const auto load = static_cast<std::size_t>(step.stages[difference].sources[1]) - first_;
    const Operand& operand = step.operands[static_cast<std::size_t>(links_[load].operand)];
    const auto zero_points = constants[static_cast<std::size_t>(operand.position)].as<std::int32_t>();
    if (zero_points.size() == 1) {  // for all, as any single factor: rows of one channel may be taken side by side
      stages_[stage].data.input_zero_point = zero_points[0];
    } else {
      stages_[stage].data.zero_points.assign(zero_points.begin(), zero_points.end());
    }
    stages_[difference].same = true;
    links_[load].unread = true;
  }
}

// No difference may leave 32 bits, and nothing else may read it or the constant.
bool Chain::takes_zero_points(const StepSpec& step, std::size_t rescale, std::span<const Constant> constants) const {
  const auto stage_of = [&](int reg, Opcode opcode) {
    const std::int64_t stage = reg - static_cast<std::int64_t>(first_);
    return stage >= 0 && step.stages[static_cast<std::size_t>(stage)].opcode == opcode ? stage : -1;
  };
  const auto readers = [&](int reg) {
    std::int64_t count = 0;
    for (const StageSpec& stage : step.stages) count += std::count(stage.sources.begin(), stage.sources.end(), reg);
    return count;
  };
  if (step.stages[rescale].opcode != Opcode::rescale_ || stages_[rescale].rows == nullptr) return false;
  const int reg = step.stages[rescale].sources[0];
  const std::int64_t difference = stage_of(reg, Opcode::sub_);
  if (difference < 0 || readers(reg) != 1) return false;
  const std::vector<int>& sources = step.stages[static_cast<std::size_t>(difference)].sources;
  const std::int64_t load = stage_of(sources[1], Opcode::load_), cast = stage_of(sources[0], Opcode::cast_);
  if (load < 0 || cast < 0 || readers(sources[1]) != 1) return false;
  const int narrow = step.stages[static_cast<std::size_t>(cast)].sources[0] - static_cast<int>(first_);
  if (narrow < 0 || stages_[static_cast<std::size_t>(narrow)].dtype != DType::i16) return false;
  const Operand& constant = step.operands[static_cast<std::size_t>(links_[static_cast<std::size_t>(load)].operand)];
  const bool one_row = constant.rows() == 1 && constant.shape.last() == step.result.shape.last();
  if (constant.room != Room::constant || !one_row) return false;
  const auto zero_points = constants[static_cast<std::size_t>(constant.position)].as<std::int32_t>();
  return std::all_of(zero_points.begin(), zero_points.end(), [](std::int32_t c) { return -kFarthest <= c && c <= kFarthest; });
}

// A joined stage takes the last one's place, and nothing is done for those before it.
void Chain::join(StepSpec& step) {
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    std::optional<Joined> joined = find_joined(step.stages, stages_, first_, stage, *kernels_);
    if (!joined) continue;
    stages_[stage] = std::move(joined->stage);
    step.stages[stage].sources = {joined->x};
    for (std::size_t inner : joined->inner) {
      stages_[inner].rows = nullptr;
      stages_[inner].same = false;
      step.stages[inner].sources.clear();
      links_[inner].unread = true;
    }
    const auto begin = links_.begin(), end = begin + static_cast<std::ptrdiff_t>(stage);
    const bool alone = std::all_of(begin, end, [](const Link& link) { return link.unread; });
    if (first_ == 1 && joined->x == 0 && alone) front_ = stage + 1;
  }
}

// A register's slot is free again after the last stage that reads it, so that tiles stay few and in the nearest cache.
// A stage that is the same as its source shares the slot of that source.
void Chain::assign_slots(const StepSpec& step) {
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
    if (stages_[stage].same || links_[stage].unread) continue;
    auto free = std::find(taken.begin(), taken.end(), false);
    if (free == taken.end()) free = taken.insert(taken.end(), false);
    *free = true;
    slot[first_ + stage] = links_[stage].slot = static_cast<int>(free - taken.begin());
  }
  slots_ = std::max(1, static_cast<int>(taken.size()));
  find_loads_in_place(step, root);
}

// `root` has for each register the one that it is the same as. A register must become a tile if it is stored, or if a
// stage without `rows` reads it, other than as the second source of a pair.
void Chain::find_loads_in_place(const StepSpec& step, std::span<const std::size_t> root) {
  std::vector<bool> tiled(root.size(), false), second(root.size(), false), by_rows(root.size(), false);
  tiled[root.back()] = true;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    if (stages_[stage].same) continue;
    const auto& sources = step.stages[stage].sources;
    for (std::size_t place = 0; place < sources.size(); ++place) {
      auto& kind = stages_[stage].rows != nullptr ? by_rows : stages_[stage].pair != nullptr && place == 1 ? second : tiled;
      kind[root[static_cast<std::size_t>(sources[place])]] = true;
    }
  }
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    const DType dtype = stages_[stage].dtype;
    const std::size_t reg = first_ + stage;
    const bool loads = links_[stage].operand >= 0 && !tiled[reg], whole = dtype == DType::i32;
    const bool fits = whole || (!second[reg] && (dtype == DType::i16 || dtype == DType::u8 || links_[stage].bias != 0));
    links_[stage].in_place = loads && fits;
    links_[stage].repeats = loads && whole && !by_rows[reg];
  }
  if (stages_.empty()) return;
  const Stage& first = stages_.front();
  const bool rescales = step.stages.front().opcode == Opcode::rescale_ && first.rows != nullptr && first.dtype == DType::i16;
  takes_words_ = first_ == 1 && rescales && !tiled[1] && !second[1] && step.stages.front().sources[0] == 0 &&
                 std::none_of(step.stages.begin() + 1, step.stages.end(), [](const StageSpec& stage) {
                   return std::find(stage.sources.begin(), stage.sources.end(), 0) != stage.sources.end();
                 });
}

void Chain::run_front(const Tile& tile, std::byte* scratch) const {
  if (front_ == 0) return;
  const Stage& joined = stages_[front_ - 1];
  std::int32_t* sums = accumulator(scratch);
  if (joined.rows != nullptr) {
    joined.rows(joined.data, tile, dense(sums, tile), {{reinterpret_cast<unsigned char*>(sums), tile.width, 4}, 0});
  } else {
    joined.body(joined.data, tile, sums, nullptr, nullptr, sums);
  }
}

void Chain::run(const Tile& tile, std::span<const TileOperand> operands, std::byte* result, std::int64_t pitch,
                std::byte* scratch, bool from_words) const {
  Source registers[kMaxStages + 1];
  registers[0] = dense(accumulator(scratch), tile);
  const bool direct = result_dtype_ == DType::i32 && (pitch == tile.width || tile.rows == 1);
  const Target whole{{reinterpret_cast<unsigned char*>(result), pitch, size_of(result_dtype_)}, result_bias_};
  if (from_words) registers[1] = {{reinterpret_cast<const unsigned char*>(words(scratch)), tile.width, 2}, 0, false};
  for (std::size_t i = from_words ? 1 : 0; i < stages_.size(); ++i) {
    const Link& link = links_[i];
    const Stage& stage = stages_[i];
    const bool last = i + 1 == stages_.size();
    const auto source = [&](int place) { return integers(registers[link.sources[place]]); };
    std::int32_t* slot = accumulator(scratch) + link.slot * slot_elements();
    std::int32_t* out = direct && last ? reinterpret_cast<std::int32_t*>(result) : slot;
    Source& value = registers[first_ + i];
    if (link.unread) continue;
    if (link.operand >= 0) {
      value = load(link, stage, tile, operands[static_cast<std::size_t>(link.operand)], out);
    } else if (stage.same) {
      value = registers[link.sources[0]];
    } else if (stage.rows != nullptr && last) {
      return stage.rows(stage.data, tile, registers[link.sources[0]], whole);
    } else if (stage.rows != nullptr) {
      stage.rows(stage.data, tile, registers[link.sources[0]], {{reinterpret_cast<unsigned char*>(out), tile.width, 4}, 0});
      value = dense(out, tile);
    } else if (stage.pair != nullptr) {
      const Source& y = registers[link.sources[1]];
      stage.pair(stage.data, tile, source(0), {integers(y), y.rows.pitch, y.repeated}, out);
      value = dense(out, tile);
    } else {
      stage.body(stage.data, tile, source(0), source(1), source(2), out);
      value = dense(out, tile);
    }
  }
  const Source& last = registers[first_ + stages_.size() - 1];
  if (last.rows.data != whole.rows.data) store(tile, integers(last), result, pitch);
}

Source Chain::load(const Link& link, const Stage& stage, const Tile& tile, const TileOperand& operand,
                   std::int32_t* out) const {
  const bool repeated = operand.column_stride == 0;
  const bool as_it_is = !repeated && (operand.row_stride == tile.width || tile.rows == 1);
  if (repeated ? link.repeats : link.in_place || (stage.dtype == DType::i32 && as_it_is)) {
    const FromRows rows{reinterpret_cast<const unsigned char*>(operand.data), operand.row_stride, size_of(stage.dtype)};
    return {rows, link.bias, repeated};
  }
  if (stage.dtype == DType::i32) {
    load_rows<std::int32_t>(*kernels_->elements, tile, operand, out);
  } else if (stage.dtype == DType::i16 && repeated) {
    load_rows<std::int16_t>(*kernels_->elements, tile, operand, out);
  } else if (stage.dtype == DType::i8 && link.bias == 0) {
    load_rows<std::int8_t>(*kernels_->elements, tile, operand, out);
  } else {
    for (std::int64_t row = 0; row < tile.rows; ++row) load_row(link, stage, tile.width, operand, row, out);
  }
  return dense(out, tile);
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
