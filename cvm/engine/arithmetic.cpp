// Element-wise arithmetic on 32-bit registers. What a proven program excludes wraps; nothing traps.
#include "arithmetic.h"

#include <algorithm>
#include <bit>

#include "stage.h"

namespace cvm {
namespace {

using Registers = const std::int32_t*;

constexpr std::int64_t kLongRow = 8;  // from here on a division by a product is worth its preparation

template <typename Operation>
void each(const Tile& tile, Registers x, std::int32_t* out, Operation operation) {
  const std::int64_t count = tile.rows * tile.width;
  for (std::int64_t i = 0; i < count; ++i) out[i] = operation(x[i]);
}

template <typename Operation>
void each(const Tile& tile, Registers x, Registers y, std::int32_t* out, Operation operation) {
  const std::int64_t count = tile.rows * tile.width;
  for (std::int64_t i = 0; i < count; ++i) out[i] = operation(x[i], y[i]);
}

std::int32_t divide(std::int32_t x, std::int32_t y) {
  if (y == 0) return 0;
  return y == -1 ? wrap_sub(0, x) : x / y;
}

std::int32_t leading_zeros(std::int32_t x) { return std::countl_zero(static_cast<std::uint32_t>(x)); }

// floor(sqrt(x)), one bit of the root at a time.
std::int32_t square_root(std::int32_t x) {
  std::int32_t root = 0;
  for (std::int32_t bit = 1 << 15; bit > 0; bit >>= 1) {
    const std::int64_t candidate = root | bit;
    if (candidate * candidate <= x) root |= bit;
  }
  return root;
}

void add(const StageData& data, const Tile& tile, Registers x, const Second& y, std::int32_t* out) {
  data.kernels->elements->add(tile, x, y, out);
}

void sub(const StageData& data, const Tile& tile, Registers x, const Second& y, std::int32_t* out) {
  data.kernels->elements->sub(tile, x, y, out);
}

void mul_plain(const StageData& data, const Tile& tile, Registers x, const Second& y, std::int32_t* out) {
  data.kernels->elements->mul(tile, x, y, out);
}

void mul_shifted(const StageData& data, const Tile& tile, Registers x, const Second& y, std::int32_t* out) {
  data.kernels->elements->mul_shifted(data.amount, tile, x, y, out);
}

bool all_equal(Registers y, std::int64_t count) {
  std::int32_t differences = 0;
  for (std::int64_t i = 1; i < count; ++i) differences |= y[i] ^ y[0];
  return differences == 0;
}

// A divisor for a whole row, as softmax has, is divided by once.
void intdiv(const StageData& data, const Tile& tile, Registers x, const Second& y, std::int32_t* out) {
  Registers divisors = y.data;
  for (std::int64_t row = 0; row < tile.rows; ++row, x += tile.width, divisors += y.pitch, out += tile.width) {
    const std::int32_t first = divisors[0];
    if (first >= 2 && (y.repeated || (tile.width >= kLongRow && all_equal(divisors, tile.width)))) {
      data.kernels->elements->divide(first, tile.width, x, out);
    } else if (y.repeated) {
      std::transform(x, x + tile.width, out, [first](std::int32_t a) { return divide(a, first); });
    } else {
      std::transform(x, x + tile.width, divisors, out, divide);
    }
  }
}

void maximum(const StageData& data, const Tile& tile, Registers x, Registers y, Registers, std::int32_t* out) {
  data.kernels->elements->maximum(tile.rows * tile.width, x, y, out);
}

void minimum(const StageData& data, const Tile& tile, Registers x, Registers y, Registers, std::int32_t* out) {
  data.kernels->elements->minimum(tile.rows * tile.width, x, y, out);
}

void abs(const StageData& data, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  data.kernels->elements->abs(tile.rows * tile.width, x, out);
}

void negate(const StageData& data, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  const std::int64_t zero_points = std::int64_t{data.input_zero_point} + data.output_zero_point;
  each(tile, x, out,
       [&](std::int32_t a) { return static_cast<std::int32_t>(clamp64(zero_points - a, data.low, data.high)); });
}

void shift_left(const StageData& data, const Tile& tile, Registers x, const Second& s, std::int32_t* out) {
  data.kernels->elements->shift_left(tile, x, s, out);
}

// Wraps what a proven program excludes, as a cast does, so that a register always holds an integer of its dtype.
template <typename T>
void narrow_shift_left(const StageData& data, const Tile& tile, Registers x, const Second& s, std::int32_t* out) {
  data.kernels->elements->shift_left(tile, x, s, out);
  for (std::int64_t i = 0; i < tile.rows * tile.width; ++i) out[i] = static_cast<T>(out[i]);
}

void shift_right(const StageData& data, const Tile& tile, Registers x, const Second& s, std::int32_t* out) {
  const ElementKernels& kernels = *data.kernels->elements;
  (data.flag ? kernels.shift_right_rounded : kernels.shift_right)(tile, x, s, out);
}

void clz(const StageData&, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  each(tile, x, out, leading_zeros);
}

void isqrt(const StageData&, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  each(tile, x, out, square_root);
}

// Stages on 32-bit operands alone.
Expected<Stage> plain(const StageCall& call, std::size_t sources) {
  CVM_REQUIRE(call.takes(sources, 0) && call.all_are(DType::i32),
              "takes " + std::to_string(sources) + " sources of i32");
  Stage stage;
  stage.data.kernels = &call.kernels;
  return stage;
}

Expected<Stage> plain(const StageCall& call, std::size_t sources, StageBody body) {
  Expected<Stage> stage = plain(call, sources);
  if (stage) stage->body = body;
  return stage;
}

Expected<Stage> plain_pair(const StageCall& call, StagePair pair) {
  Expected<Stage> stage = plain(call, 2);
  if (stage) stage->pair = pair;
  return stage;
}

bool is_signed(DType dtype) { return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32; }

// Stages whose two sources and result have one signed dtype.
Expected<Stage> shift(const StageCall& call, StagePair pair) {
  CVM_REQUIRE(call.takes(2, 0) && is_signed(call.sources[0]) && call.sources[0] == call.sources[1],
              "takes two sources of one signed dtype");
  Stage stage;
  stage.pair = pair;
  stage.dtype = call.sources[0];
  stage.data.kernels = &call.kernels;
  return stage;
}

}  // namespace

Expected<Stage> make_stage_add(const StageCall& call) { return plain_pair(call, add); }
Expected<Stage> make_stage_sub(const StageCall& call) { return plain_pair(call, sub); }
Expected<Stage> make_stage_intdiv(const StageCall& call) { return plain_pair(call, intdiv); }
Expected<Stage> make_stage_maximum(const StageCall& call) { return plain(call, 2, maximum); }
Expected<Stage> make_stage_minimum(const StageCall& call) { return plain(call, 2, minimum); }
Expected<Stage> make_stage_abs(const StageCall& call) { return plain(call, 1, abs); }
Expected<Stage> make_stage_clz(const StageCall& call) { return plain(call, 1, clz); }
Expected<Stage> make_stage_isqrt(const StageCall& call) { return plain(call, 1, isqrt); }

Expected<Stage> make_stage_shift_left(const StageCall& call) {
  const DType dtype = call.sources.empty() ? DType::i32 : call.sources[0];
  if (dtype == DType::i8) return shift(call, narrow_shift_left<std::int8_t>);
  if (dtype == DType::i16) return shift(call, narrow_shift_left<std::int16_t>);
  return shift(call, shift_left);
}

Expected<Stage> make_stage_shift_right(const StageCall& call) {
  const auto* round = call.ints("round", 1);
  CVM_REQUIRE(round != nullptr, "round is missing");
  Expected<Stage> stage = shift(call, shift_right);
  if (stage) stage->data.flag = (*round)[0] != 0;
  return stage;
}

Expected<Stage> make_stage_mul(const StageCall& call) {
  CVM_REQUIRE(call.takes(2, 0) && is_signed(call.sources[0]) && call.sources[0] == call.sources[1],
              "takes two sources of one signed dtype");
  const auto* amount = call.ints("shift", 1);
  CVM_REQUIRE(amount && (*amount)[0] >= 0 && (*amount)[0] <= 63, "shift is not 0..63");
  Stage stage;
  stage.data.amount = static_cast<int>((*amount)[0]);
  stage.data.kernels = &call.kernels;
  stage.pair = stage.data.amount == 0 ? mul_plain : mul_shifted;
  return stage;
}

Expected<Stage> make_stage_negate(const StageCall& call) {
  const auto* input_zp = call.ints("input_zp", 1);
  const auto* output_zp = call.ints("output_zp", 1);
  CVM_REQUIRE(call.takes(1, 0) && is_signed(call.sources[0]) && input_zp && output_zp,
              "takes one signed source, input_zp and output_zp");
  Stage stage;
  stage.body = negate;
  stage.dtype = call.sources[0];
  for (std::int64_t zero_point : {(*input_zp)[0], (*output_zp)[0]}) {
    CVM_REQUIRE(stage.dtype == DType::i8 ? -128 <= zero_point && zero_point <= 127 : zero_point == 0,
                "a zero point does not fit");
  }
  stage.data.input_zero_point = static_cast<std::int32_t>((*input_zp)[0]);
  stage.data.output_zero_point = static_cast<std::int32_t>((*output_zp)[0]);
  stage.data.low = static_cast<std::int32_t>(lowest(stage.dtype));
  stage.data.high = static_cast<std::int32_t>(highest(stage.dtype));
  return stage;
}

}  // namespace cvm
