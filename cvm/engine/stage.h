// One element-wise operation of a plan, checked and ready to run on tiles of 32-bit integers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "plan.h"

namespace cvm {

// The data of a stage: the fields that its body uses are filled in by its maker, the others keep their defaults.
struct StageData {
  const Kernels* kernels = nullptr;
  std::vector<std::int32_t> multiplier, shift;  // rescale
  std::vector<std::int32_t> zero_points;        // rescale: one for each channel, instead of input_zero_point
  std::int32_t least_shift = 2, most_shift = 62;
  std::vector<std::int32_t> table;              // table
  std::vector<std::int16_t> words;              // table, interpolate: of 8- or 16-bit entries
  std::int32_t input_zero_point = 0, output_zero_point = 0;
  std::int32_t low = 0, high = 0;
  int amount = 0;     // of a fixed shift
  bool flag = false;  // rescale: wide; shift_right: round; a gate: mirrored
  bool fits32 = false;  // rescale: products by multipliers without their trailing zeros fit 32 bits, with all that is added
  DType from = DType::i32, to = DType::i32;
  std::vector<StageData> parts;  // of a joined stage (joined.h): its rescales
};

// A rescale in the form that kernels take. Its input integers hold `bias` more than they stand for, its results
// `out_bias`.
Rescale rescale_of(const StageData& data, std::int32_t bias, std::int32_t out_bias);

// `out` may be `a`, `b` or `c`: element i of the result depends on elements i of the sources alone.
using StageBody = void (*)(const StageData& data, const Tile& tile, const std::int32_t* a, const std::int32_t* b,
                           const std::int32_t* c, std::int32_t* out);

// Where elements lie: a dense tile of 32-bit integers, or a tensor's own memory. Bytes hold `bias` more than their integers.
struct Source {
  FromRows rows;
  std::int32_t bias;
  bool repeated;  // one element for each row
};
struct Target {
  ToRows rows;
  std::int32_t bias;
};

// The body of a stage with one source. It reads and writes elements wherever they lie, so that no tile is loaded or
// stored for it.
using StageRows = void (*)(const StageData& data, const Tile& tile, const Source& x, const Target& out);

// The body of a stage with two sources: the first is a tile, the second need not be one.
using StagePair = void (*)(const StageData& data, const Tile& tile, const std::int32_t* x, const Second& y, std::int32_t* out);

struct Stage {
  StageBody body = nullptr;
  StageRows rows = nullptr;  // or this
  StagePair pair = nullptr;  // or this
  StageData data;
  DType dtype = DType::i32;  // of the result
  bool same = false;         // the result is the first source as it stands; there is no body to call
};

// What a maker may look at. Every function here has an answer for any plan, however wrong the plan is.
struct StageCall {
  const StageSpec& spec;
  std::span<const DType> sources;
  std::span<const Constant> constants;
  std::int64_t channels;  // length of the result's last axis
  const Kernels& kernels;

  bool takes(std::size_t sources_expected, std::size_t parameters_expected) const {
    return sources.size() == sources_expected && spec.parameters.size() == parameters_expected;
  }
  bool all_are(DType dtype) const {
    for (DType source : sources) {
      if (source != dtype) return false;
    }
    return true;
  }
  // The integers of an attribute, or nullptr unless there are `count` of them.
  const std::vector<std::int64_t>* ints(std::string_view name, int count) const {
    return spec.attributes.find(name, count);
  }
  // A parameter of this dtype and rank 1, or nullptr.
  const Constant* vector(std::size_t index, DType dtype) const {
    const Constant& constant = constants[static_cast<std::size_t>(spec.parameters[index])];
    return constant.dtype == dtype && constant.shape.rank == 1 ? &constant : nullptr;
  }
};

#define CVM_STAGE_MAKER(name, number) Expected<Stage> make_stage_##name(const StageCall& call);
CVM_STAGES(CVM_STAGE_MAKER)
#undef CVM_STAGE_MAKER

}  // namespace cvm
