// Finds stages that one kernel does at once, and lays out what that kernel reads.
#include "joined.h"

#include <algorithm>

namespace cvm {
namespace {

constexpr int kShift = 7;  // of a gate's product: interpolated integers have so many bits more than their points

bool is_mirrored(const std::vector<std::int16_t>& points) {
  const int sum = points.front() + points.back();
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i] + points[points.size() - 1 - i] != sum) return false;
  }
  return points[0] == points[1] && sum >= lowest(DType::i16) && sum <= highest(DType::i16);
}

void run_gate(const StageData& data, const Tile& tile, const std::int32_t* x, const std::int32_t*, const std::int32_t*,
              std::int32_t* out) {
  const Gate gate{rescale_of(data.parts[0], 0, 0), rescale_of(data.parts[1], 0, 0), data.words.data(), data.flag};
  data.kernels->lookups->gate(gate, tile, x, out);
}

void run_table(const StageData& data, const Tile& tile, const Source& x, const Target& out) {
  const ByteTable table{rescale_of(data.parts[0], 0, 0), data.words.data()};
  data.kernels->lookups->table(table, tile, reinterpret_cast<const std::int32_t*>(x.rows.data), out.bias, out.rows);
}

// Reads stages by their registers.
class Reader {
 public:
  Reader(std::span<const StageSpec> specs, std::span<const Stage> stages, std::size_t first, const Kernels& kernels)
      : specs_(specs), stages_(stages), first_(static_cast<int>(first)), kernels_(kernels) {}

  std::optional<Joined> read(std::size_t last) const {
    std::optional<Joined> joined = specs_[last].opcode == Opcode::mul_     ? gate(last)
                                   : specs_[last].opcode == Opcode::table_ ? table(last)
                                                                           : std::nullopt;
    if (!joined || read_elsewhere(*joined, last)) return std::nullopt;
    joined->stage.data.kernels = &kernels_;
    return joined;
  }

 private:
  std::size_t place(int reg) const { return static_cast<std::size_t>(reg - first_); }
  const Stage& stage(int reg) const { return stages_[place(reg)]; }
  bool is(int reg, Opcode opcode) const { return reg >= first_ && specs_[place(reg)].opcode == opcode; }
  int source(int reg) const { return specs_[place(reg)].sources[0]; }

  // Whether this is a rescale to dtype `to` whose results fit 32 bits before they saturate.
  bool rescales(int reg, DType to) const {
    return is(reg, Opcode::rescale_) && stage(reg).rows != nullptr && stage(reg).dtype == to;
  }

  std::optional<Joined> gate(std::size_t product) const {
    if (kernels_.lookups->gate == nullptr || stages_[product].data.amount != kShift) return std::nullopt;
    int cast = specs_[product].sources[0], points = specs_[product].sources[1];
    if (is(points, Opcode::cast_)) std::swap(cast, points);
    if (!is(cast, Opcode::cast_) || !is(points, Opcode::interpolate_) || stage(cast).dtype != DType::i32) return std::nullopt;
    const int index = source(points), value = source(cast);
    if (!rescales(index, DType::i16) || !rescales(value, DType::i16) || source(index) != source(value)) return std::nullopt;
    Joined joined{{place(index), place(value), place(points), place(cast)}, source(index), {}};
    joined.stage.body = run_gate;
    joined.stage.data.parts = {stage(index).data, stage(value).data};
    joined.stage.data.words = stage(points).data.words;
    joined.stage.data.flag = is_mirrored(joined.stage.data.words);
    return joined;
  }

  std::optional<Joined> table(std::size_t last) const {
    const int index = specs_[last].sources[0];
    if (kernels_.lookups->table == nullptr || stages_[last].dtype != DType::i8) return std::nullopt;
    if (first_ != 1 || !rescales(index, DType::i8) || source(index) != 0) return std::nullopt;
    Joined joined{{place(index)}, 0, {}};
    joined.stage.rows = run_table;
    joined.stage.dtype = DType::i8;
    joined.stage.data.parts = {stage(index).data};
    joined.stage.data.words = stages_[last].data.words;
    return joined;
  }

  bool read_elsewhere(const Joined& joined, std::size_t last) const {
    const auto is_inner = [&](std::size_t stage) { return std::find(joined.inner.begin(), joined.inner.end(), stage) != joined.inner.end(); };
    for (std::size_t reader = 0; reader < specs_.size(); ++reader) {
      if (reader == last || is_inner(reader)) continue;
      for (int reg : specs_[reader].sources) {
        if (reg >= first_ && is_inner(place(reg))) return true;
      }
    }
    return false;
  }

  std::span<const StageSpec> specs_;
  std::span<const Stage> stages_;
  int first_;
  const Kernels& kernels_;
};

}  // namespace

std::optional<Joined> find_joined(std::span<const StageSpec> specs, std::span<const Stage> stages, std::size_t first,
                                  std::size_t last, const Kernels& kernels) {
  return Reader(specs, stages, first, kernels).read(last);
}

}  // namespace cvm
