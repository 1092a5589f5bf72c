// The table stages: one entry for each integer that an 8- or 16-bit source can hold, or lines between 513 points.
#include <algorithm>

#include "stage.h"

namespace cvm {
namespace {

// Entries lie where their integers, modulo the size of the table, point: no index, whatever the register holds, leaves it.
template <typename Index, typename T, typename In, typename Out>
void look_up(const T* table, const Tile& tile, const In* x, std::int64_t x_pitch, std::int32_t bias, Out* out,
             std::int64_t pitch, std::int32_t out_bias) {
  for (std::int64_t row = 0; row < tile.rows; ++row, x += x_pitch, out += pitch) {
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < tile.width; ++i) out[i] = static_cast<Out>(table[static_cast<Index>(x[i] - bias)] + out_bias);
  }
}

template <typename Index, typename T, typename In>
void look_up_from(const T* table, const Tile& tile, const In* x, const Source& from, const Target& out) {
  const std::int64_t pitch = from.rows.pitch, out_pitch = out.rows.pitch;
  unsigned char* to = out.rows.data;
  switch (out.rows.size) {
    case 1: return look_up<Index>(table, tile, x, pitch, from.bias, to, out_pitch, out.bias);
    case 2: return look_up<Index>(table, tile, x, pitch, from.bias, reinterpret_cast<std::int16_t*>(to), out_pitch, 0);
    default: return look_up<Index>(table, tile, x, pitch, from.bias, reinterpret_cast<std::int32_t*>(to), out_pitch, 0);
  }
}

template <typename Index, typename T>
void look_up_any(const T* table, const Tile& tile, const Source& x, const Target& out) {
  const unsigned char* from = x.rows.data;
  switch (x.rows.size) {
    case 1: return look_up_from<Index>(table, tile, from, x, out);
    case 2: return look_up_from<Index>(table, tile, reinterpret_cast<const std::int16_t*>(from), x, out);
    default: return look_up_from<Index>(table, tile, reinterpret_cast<const std::int32_t*>(from), x, out);
  }
}

template <typename T>
void look_up_in(const std::vector<T>& table, const Tile& tile, const Source& x, const Target& out) {
  if (table.size() == 256) return look_up_any<std::uint8_t>(table.data(), tile, x, out);
  look_up_any<std::uint16_t>(table.data(), tile, x, out);
}

void table(const StageData& data, const Tile& tile, const Source& x, const Target& out) {
  look_up_in(data.table, tile, x, out);
}

// Half the size, so twice as much of it stays in the nearest cache.
void table_of_words(const StageData& data, const Tile& tile, const Source& x, const Target& out) {
  look_up_in(data.words, tile, x, out);
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

// The entry of integer 0 comes first.
template <typename From, typename To>
void copy_turned(const Constant& values, DType from, std::vector<To>& to) {
  copy_entries<From>(values, to);
  std::rotate(to.begin(), to.begin() - lowest(from), to.end());
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
  stage.rows = values.dtype == DType::i32 ? table : table_of_words;
  switch (values.dtype) {
    case DType::i8:
      copy_turned<std::int8_t>(values, from, stage.data.words);
      break;
    case DType::i16:
      copy_turned<std::int16_t>(values, from, stage.data.words);
      break;
    case DType::i32:
      copy_turned<std::int32_t>(values, from, stage.data.table);
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
