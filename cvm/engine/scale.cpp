// Changing what an integer stands for: rescale, clamp, cast.
#include <algorithm>

#include "arithmetic.h"
#include "stage.h"

namespace cvm {
namespace {

using Registers = const std::int32_t*;

std::int64_t elements(const Tile& tile) { return tile.rows * tile.width; }

void rescale(const StageData& data, const Tile& tile, const Source& x, const Target& out) {
  data.kernels->elements->rescale_rows(rescale_of(data, x.bias, out.bias), tile, x.rows, out.rows);
}

void rescale_wide(const StageData& data, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  data.kernels->elements->rescale(rescale_of(data, 0, 0), tile, x, out);
}

void clamp(const StageData& data, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  data.kernels->elements->clamp(data.low, data.high, elements(tile), x, out);
}

void to_i8(const StageData& data, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  data.kernels->elements->wrap8(elements(tile), x, out);
}

void to_i16(const StageData& data, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  data.kernels->elements->wrap16(elements(tile), x, out);
}

void to_bool(const StageData&, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  for (std::int64_t i = 0; i < elements(tile); ++i) out[i] = x[i] != 0;
}

void to_u8(const StageData&, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  for (std::int64_t i = 0; i < elements(tile); ++i) out[i] = static_cast<std::uint8_t>(x[i]);
}

// Wraps what a proven program excludes, so that a register always holds an integer of its dtype. i32 takes any as it is.
StageBody cast_to(DType dtype) {
  constexpr StageBody kBodies[] = {to_bool, to_i8, to_u8, to_i16, nullptr};
  return kBodies[static_cast<int>(dtype)];
}

bool is_zero_point(std::int64_t value, DType dtype) {
  const bool allowed = dtype == DType::i8 || dtype == DType::u8;
  return allowed ? lowest(dtype) <= value && value <= highest(dtype) : value == 0;
}

// Whether some result leaves 32 bits before it saturates; below a shift of 31 that depends on x.
bool is_wide(const std::vector<std::int32_t>& multiplier, const std::vector<std::int32_t>& shift, DType from) {
  for (std::size_t i = 0; i < multiplier.size(); ++i) {
    const std::int64_t magnitude = -lowest(from) + (from == DType::i32 ? 0 : 255);
    if (multiply_shift(magnitude, multiplier[i], shift[i]) > highest(DType::i32)) return true;
  }
  return false;
}

}  // namespace

Rescale rescale_of(const StageData& data, std::int32_t bias, std::int32_t out_bias) {
  return {data.multiplier.data(),
          data.shift.data(),
          static_cast<std::int64_t>(data.multiplier.size()),
          data.input_zero_point + bias,
          data.output_zero_point + out_bias,
          data.low + out_bias,
          data.high + out_bias,
          data.flag,
          data.least_shift,
          data.most_shift,
          data.zero_points.empty() ? nullptr : data.zero_points.data()};
}

Expected<Stage> make_stage_rescale(const StageCall& call) {
  CVM_REQUIRE(call.takes(1, 2), "takes one source, multiplier and shift");
  const DType from = call.sources[0];
  const Constant* multiplier = call.vector(0, DType::i32);
  const Constant* shift = call.vector(1, DType::i8);
  CVM_REQUIRE(from != DType::boolean && multiplier && shift && multiplier->shape == shift->shape,
              "x is bool, or multiplier and shift are not vectors of one length");
  const std::int64_t count = multiplier->shape[0];
  CVM_REQUIRE(count == 1 || count == call.channels, "multiplier has neither 1 entry nor one per channel");
  const auto* input_zp = call.ints("input_zp", 1);
  const auto* output_zp = call.ints("output_zp", 1);
  const auto* dtype = call.ints("dtype", 1);
  CVM_REQUIRE(input_zp && output_zp && dtype && ((*dtype)[0] == 1 || (*dtype)[0] == 3 || (*dtype)[0] == 4),
              "input_zp, output_zp or dtype is missing or wrong");
  Stage stage;
  stage.dtype = static_cast<DType>((*dtype)[0]);
  CVM_REQUIRE(is_zero_point((*input_zp)[0], from) && is_zero_point((*output_zp)[0], stage.dtype),
              "a zero point does not fit its dtype");
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t m = multiplier->as<std::int32_t>()[static_cast<std::size_t>(i)];
    const std::int32_t s = shift->as<std::int8_t>()[static_cast<std::size_t>(i)];
    CVM_REQUIRE(m >= 0 && s >= 2 && s <= 62, "a multiplier is negative or a shift outside 2..62");
    stage.data.multiplier.push_back(m);
    stage.data.shift.push_back(s);
  }
  stage.data.input_zero_point = static_cast<std::int32_t>((*input_zp)[0]);
  stage.data.output_zero_point = static_cast<std::int32_t>((*output_zp)[0]);
  stage.data.low = static_cast<std::int32_t>(lowest(stage.dtype));
  stage.data.high = static_cast<std::int32_t>(highest(stage.dtype));
  const auto* narrow = call.ints("narrow", 1);  // proven; were it false, results would wrap, and nothing worse
  stage.data.flag = !(narrow && (*narrow)[0] == 1) && is_wide(stage.data.multiplier, stage.data.shift, from);
  const auto* fits32 = call.ints("fits32", 1);  // as above
  stage.data.fits32 = call.kernels.short_bytes && fits32 && (*fits32)[0] == 1;
  if (stage.data.flag) {
    stage.body = rescale_wide;
  } else {
    stage.rows = rescale;
  }
  const auto [least, most] = std::minmax_element(stage.data.shift.begin(), stage.data.shift.end());
  stage.data.least_shift = *least, stage.data.most_shift = *most;
  stage.data.kernels = &call.kernels;
  return stage;
}

Expected<Stage> make_stage_clamp(const StageCall& call) {
  CVM_REQUIRE(call.takes(1, 0), "takes one source");
  const auto* low = call.ints("min", 1);
  const auto* high = call.ints("max", 1);
  Stage stage;
  stage.dtype = call.sources[0];
  CVM_REQUIRE(
      low && high && lowest(stage.dtype) <= (*low)[0] && (*low)[0] <= (*high)[0] && (*high)[0] <= highest(stage.dtype),
      "min or max is missing or does not fit x");
  stage.body = clamp;
  stage.data.low = static_cast<std::int32_t>((*low)[0]);
  stage.data.high = static_cast<std::int32_t>((*high)[0]);
  stage.data.kernels = &call.kernels;
  return stage;
}

Expected<Stage> make_stage_cast(const StageCall& call) {
  CVM_REQUIRE(call.takes(1, 0), "takes one source");
  const auto* dtype = call.ints("dtype", 1);
  CVM_REQUIRE(dtype && (*dtype)[0] >= 0 && (*dtype)[0] <= 4, "dtype is missing or unknown");
  Stage stage;
  stage.dtype = static_cast<DType>((*dtype)[0]);
  stage.body = cast_to(stage.dtype);
  stage.same = stage.dtype == DType::i32 || (stage.dtype == DType::i16 && call.sources[0] == DType::i8);
  stage.data.kernels = &call.kernels;
  return stage;
}

}  // namespace cvm
