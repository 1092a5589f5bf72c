// Joins halves of weights.
#include "linear_weights.h"

namespace cvm {
namespace {

constexpr std::int64_t kMostLowBits = 7;  // 2^7 * -128 - 128 fits 16 bits

std::int64_t low_bits(const StepCall& call) { return (*call.ints("low_bits", 1))[0]; }

bool are_weights(const Constant& w, const Constant& b) {
  return w.dtype == DType::i8 && w.shape.rank > 0 && b.dtype == DType::i32 && b.shape.rank == 1 && b.shape[0] == w.shape[0];
}

}  // namespace

Problem check_weights(const StepCall& call, bool halves) {
  CVM_REQUIRE(call.spec.parameters.size() == 2 || (halves && in_halves(call)), "takes x, w and b");
  CVM_REQUIRE(are_weights(call.parameter(0), call.parameter(1)), "w is not i8, or b is not one i32 per output");
  if (!in_halves(call)) return {};
  CVM_REQUIRE(are_weights(call.parameter(2), call.parameter(3)) && call.parameter(2).shape == call.parameter(0).shape,
              "the halves of the weights are not alike");
  const auto* bits = call.ints("low_bits", 1);
  CVM_REQUIRE(bits && (*bits)[0] >= 1 && (*bits)[0] <= kMostLowBits, "low_bits is not 1..7");
  CVM_REQUIRE(call.operand(0).dtype == DType::i16, "weights in halves want an x of i16");
  return {};
}

std::vector<std::int16_t> whole_weights(const StepCall& call) {
  const auto low = call.parameter(0).as<std::int8_t>(), high = call.parameter(2).as<std::int8_t>();
  const int unit = 1 << low_bits(call);
  std::vector<std::int16_t> whole(low.size());
  for (std::size_t i = 0; i < low.size(); ++i) whole[i] = static_cast<std::int16_t>(high[i] * unit + low[i]);
  return whole;
}

std::vector<std::int32_t> whole_biases(const StepCall& call) {
  const auto plain = call.parameter(1).as<std::int32_t>();
  std::vector<std::int32_t> biases(plain.begin(), plain.end());
  if (!in_halves(call)) return biases;
  const auto high = call.parameter(3).as<std::int32_t>();
  for (std::size_t i = 0; i < biases.size(); ++i) {
    const std::uint32_t shifted = static_cast<std::uint32_t>(high[i]) << low_bits(call);
    biases[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(biases[i]) + shifted);
  }
  return biases;
}

std::vector<std::int64_t> other_half(const StepCall& call) {
  if (!in_halves(call)) return {};
  return {call.spec.parameters[2], low_bits(call)};
}

}  // namespace cvm
