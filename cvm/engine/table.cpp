// The table stages: one entry for each integer that an 8- or 16-bit source can hold, or lines between 513 points.
#include "arithmetic.h"
#include "stage.h"

namespace cvm {
namespace {

constexpr std::int32_t kSegment = 128;
constexpr std::int64_t kPoints = 513;

// The mask keeps any index inside the table, whatever the register holds.
void table(const StageData& data, const Tile& tile, const std::int32_t* x, const std::int32_t*, const std::int32_t*,
           std::int32_t* out) {
  const std::int64_t count = tile.rows * tile.width;
  const auto mask = static_cast<std::uint32_t>(data.table.size() - 1);
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = data.table[static_cast<std::uint32_t>(wrap_sub(x[i], data.low)) & mask];
}

// Only 16 bits of the register count, so the index is at most 511, whatever it holds. Entries of 16 bits cannot overflow.
void interpolate(const StageData& data, const Tile& tile, const std::int32_t* x, const std::int32_t*,
                 const std::int32_t*, std::int32_t* out) {
  const std::int64_t count = tile.rows * tile.width;
  const std::int32_t* points = data.table.data();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t place = static_cast<std::uint32_t>(wrap_sub(x[i], data.low)) & 0xffff;
    const std::int32_t* from = points + place / kSegment;
    out[i] = kSegment * from[0] + static_cast<std::int32_t>(place % kSegment) * (from[1] - from[0]);
  }
}

template <typename T>
std::vector<std::int32_t> entries(const Constant& values) {
  const auto plain = values.as<T>();
  return {plain.begin(), plain.end()};
}

}  // namespace

Expected<Stage> make_stage_table(const StageCall& call) {
  CVM_REQUIRE(call.takes(1, 1), "takes one source and values");
  const DType from = call.sources[0];
  CVM_REQUIRE(from == DType::i8 || from == DType::u8 || from == DType::i16, "x is not i8, u8 or i16");
  const Constant& values = call.constants[static_cast<std::size_t>(call.spec.parameters[0])];
  CVM_REQUIRE(values.shape.rank == 1 && values.shape[0] == highest(from) - lowest(from) + 1,
              "values does not have one entry for each integer of x's dtype");
  Stage stage;
  stage.dtype = values.dtype;
  stage.body = table;
  stage.data.low = static_cast<std::int32_t>(lowest(from));
  switch (values.dtype) {
    case DType::i8:
      stage.data.table = entries<std::int8_t>(values);
      break;
    case DType::i16:
      stage.data.table = entries<std::int16_t>(values);
      break;
    case DType::i32:
      stage.data.table = entries<std::int32_t>(values);
      break;
    default:
      return "values is not i8, i16 or i32";
  }
  return stage;
}

Expected<Stage> make_stage_interpolate(const StageCall& call) {
  CVM_REQUIRE(call.takes(1, 1), "takes one source and values");
  CVM_REQUIRE(call.all_are(DType::i16), "x is not i16");
  const Constant& values = call.constants[static_cast<std::size_t>(call.spec.parameters[0])];
  CVM_REQUIRE(values.dtype == DType::i8 || values.dtype == DType::i16, "values is not i8 or i16");
  CVM_REQUIRE(values.shape.rank == 1 && values.shape[0] == kPoints, "values does not have 513 entries");
  Stage stage;
  stage.dtype = DType::i32;
  stage.body = interpolate;
  stage.data.low = static_cast<std::int32_t>(lowest(DType::i16));
  stage.data.table = values.dtype == DType::i8 ? entries<std::int8_t>(values) : entries<std::int16_t>(values);
  return stage;
}

}  // namespace cvm
