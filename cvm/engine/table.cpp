// The table stages: one entry for each integer that an 8- or 16-bit source can hold, or lines between 513 points.
#include "arithmetic.h"
#include "stage.h"

namespace cvm {
namespace {

constexpr std::int64_t kPoints = 513;

// The mask keeps any index inside the table, whatever the register holds.
template <typename T>
void look_up(std::span<const T> table, std::int32_t low, const Tile& tile, const std::int32_t* x, std::int32_t* out) {
  const std::int64_t count = tile.rows * tile.width;
  const auto mask = static_cast<std::uint32_t>(table.size() - 1);
  for (std::int64_t i = 0; i < count; ++i) out[i] = table[static_cast<std::uint32_t>(wrap_sub(x[i], low)) & mask];
}

void table(const StageData& data, const Tile& tile, const std::int32_t* x, const std::int32_t*, const std::int32_t*,
           std::int32_t* out) {
  look_up<std::int32_t>(data.table, data.low, tile, x, out);
}

// Half the size, so twice as much of it stays in the nearest cache.
void table_of_words(const StageData& data, const Tile& tile, const std::int32_t* x, const std::int32_t*, const std::int32_t*,
                    std::int32_t* out) {
  look_up<std::int16_t>(data.words, data.low, tile, x, out);
}

void interpolate(const StageData& data, const Tile& tile, const std::int32_t* x, const std::int32_t*,
                 const std::int32_t*, std::int32_t* out) {
  data.kernels->elements->interpolate(data.words.data(), tile.rows * tile.width, x, out);
}

template <typename From, typename To>
void copy_entries(const Constant& values, std::vector<To>& to) {
  const auto plain = values.as<From>();
  to.assign(plain.begin(), plain.end());
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
  stage.body = values.dtype == DType::i32 ? table : table_of_words;
  stage.data.low = static_cast<std::int32_t>(lowest(from));
  switch (values.dtype) {
    case DType::i8:
      copy_entries<std::int8_t>(values, stage.data.words);
      break;
    case DType::i16:
      copy_entries<std::int16_t>(values, stage.data.words);
      break;
    case DType::i32:
      copy_entries<std::int32_t>(values, stage.data.table);
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
  stage.data.kernels = &call.kernels;
  values.dtype == DType::i8 ? copy_entries<std::int8_t>(values, stage.data.words)
                            : copy_entries<std::int16_t>(values, stage.data.words);
  return stage;
}

}  // namespace cvm
