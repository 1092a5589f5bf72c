// What a value is: a dtype, a shape, and the place in memory where a plan keeps it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cvm {

enum class DType : std::uint8_t { boolean = 0, i8 = 1, u8 = 2, i16 = 3, i32 = 4 };

constexpr std::int64_t size_of(DType dtype) { return dtype == DType::i32 ? 4 : dtype == DType::i16 ? 2 : 1; }

constexpr std::int64_t lowest(DType dtype) {
  constexpr std::int64_t kLowest[] = {0, -128, 0, -32768, -2147483648LL};
  return kLowest[static_cast<int>(dtype)];
}

constexpr std::int64_t highest(DType dtype) {
  constexpr std::int64_t kHighest[] = {1, 127, 255, 32767, 2147483647LL};
  return kHighest[static_cast<int>(dtype)];
}

constexpr int kMaxRank = 6;
constexpr std::int64_t kMaxElements = 2147483647;

struct Shape {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> dims{};

  // Exact for the shapes that the door lets in: at most 2^31-1 elements.
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (int axis = 0; axis < rank; ++axis) count *= dims[static_cast<std::size_t>(axis)];
    return count;
  }
  std::int64_t last() const { return rank == 0 ? 1 : dims[static_cast<std::size_t>(rank - 1)]; }
  std::int64_t operator[](int axis) const { return dims[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return dims[static_cast<std::size_t>(axis)]; }
  bool operator==(const Shape&) const = default;
};

// Where a plan keeps a value. `position` is the number of an input, output or constant, or a byte offset in the arena.
// A passed value goes from its step to the next one only, at position 0; it need never lie in memory as a whole.
enum class Room : std::uint8_t { input, output, constant, arena, passed };

// But for inputs and outputs, an i8 integer q is stored as the byte q + 128 ("biased"), the form in which the dot
// products of processors take it; inputs and outputs hold plain bytes.
struct Operand {
  Room room = Room::arena;
  std::int64_t position = 0;
  DType dtype = DType::i8;
  Shape shape;
  std::int64_t pitch = 1;  // elements from one row of the last axis to the next; more than its length inside a concat

  bool external() const { return room == Room::input || room == Room::output; }
  bool biased() const { return dtype == DType::i8 && !external(); }
  bool dense() const { return pitch == shape.last(); }
  std::int64_t rows() const { return shape.elements() / shape.last(); }
  // Bytes from the first element to after the last one.
  std::int64_t extent() const { return ((rows() - 1) * pitch + shape.last()) * size_of(dtype); }
};

}  // namespace cvm
