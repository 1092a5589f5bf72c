// Comparisons, logic on 0 and 1, and choice.
#include "stage.h"

namespace cvm {
namespace {

using Registers = const std::int32_t*;

template <typename Operation>
void each(const Tile& tile, Registers x, Registers y, std::int32_t* out, Operation operation) {
  const std::int64_t count = tile.rows * tile.width;
  for (std::int64_t i = 0; i < count; ++i) out[i] = operation(x[i], y[i]) ? 1 : 0;
}

void equal(const StageData&, const Tile& tile, Registers x, Registers y, Registers, std::int32_t* out) {
  each(tile, x, y, out, [](std::int32_t a, std::int32_t b) { return a == b; });
}

void greater(const StageData&, const Tile& tile, Registers x, Registers y, Registers, std::int32_t* out) {
  each(tile, x, y, out, [](std::int32_t a, std::int32_t b) { return a > b; });
}

void greater_equal(const StageData&, const Tile& tile, Registers x, Registers y, Registers, std::int32_t* out) {
  each(tile, x, y, out, [](std::int32_t a, std::int32_t b) { return a >= b; });
}

void logical_and(const StageData&, const Tile& tile, Registers x, Registers y, Registers, std::int32_t* out) {
  each(tile, x, y, out, [](std::int32_t a, std::int32_t b) { return a != 0 && b != 0; });
}

void logical_or(const StageData&, const Tile& tile, Registers x, Registers y, Registers, std::int32_t* out) {
  each(tile, x, y, out, [](std::int32_t a, std::int32_t b) { return a != 0 || b != 0; });
}

void logical_not(const StageData&, const Tile& tile, Registers x, Registers, Registers, std::int32_t* out) {
  each(tile, x, x, out, [](std::int32_t a, std::int32_t) { return a == 0; });
}

void select(const StageData&, const Tile& tile, Registers condition, Registers x, Registers y, std::int32_t* out) {
  const std::int64_t count = tile.rows * tile.width;
  for (std::int64_t i = 0; i < count; ++i) out[i] = condition[i] != 0 ? x[i] : y[i];
}

Expected<Stage> truth(const StageCall& call, std::size_t sources, DType dtype, StageBody body) {
  CVM_REQUIRE(call.takes(sources, 0) && call.all_are(dtype),
              "takes " + std::to_string(sources) + (dtype == DType::i32 ? " sources of i32" : " sources of bool"));
  Stage stage;
  stage.body = body;
  stage.dtype = DType::boolean;
  return stage;
}

}  // namespace

Expected<Stage> make_stage_equal(const StageCall& call) { return truth(call, 2, DType::i32, equal); }
Expected<Stage> make_stage_greater(const StageCall& call) { return truth(call, 2, DType::i32, greater); }
Expected<Stage> make_stage_greater_equal(const StageCall& call) { return truth(call, 2, DType::i32, greater_equal); }
Expected<Stage> make_stage_logical_and(const StageCall& call) { return truth(call, 2, DType::boolean, logical_and); }
Expected<Stage> make_stage_logical_or(const StageCall& call) { return truth(call, 2, DType::boolean, logical_or); }
Expected<Stage> make_stage_logical_not(const StageCall& call) { return truth(call, 1, DType::boolean, logical_not); }

Expected<Stage> make_stage_select(const StageCall& call) {
  CVM_REQUIRE(call.takes(3, 0) && call.sources[0] == DType::boolean && call.sources[1] == call.sources[2],
              "takes a bool and two sources of one dtype");
  Stage stage;
  stage.body = select;
  stage.dtype = call.sources[1];
  return stage;
}

}  // namespace cvm
