// Merges axes, finds the two that matter, and copies tile by tile.
#include "strided.h"

#include <algorithm>
#include <cstring>

#include "move_row.h"
#include "transpose_block.h"

namespace cvm {
namespace {

constexpr std::int64_t kRowPieceBytes = 32768;
constexpr std::int64_t kTransposePieceElements = 4096;  // a tile of both sides stays in the first cache
constexpr std::int64_t kTransposeSide = 64;             // elements of the shorter side: whole cache lines of bytes

// Axes of one element go; neighbours over which both sides move evenly become one.
std::vector<CopyAxis> merged(const std::vector<CopyAxis>& axes) {
  std::vector<CopyAxis> kept;
  for (const CopyAxis& axis : axes) {
    if (axis.count == 1) continue;
    const bool even =
        !kept.empty() && kept.back().from == axis.from * axis.count && kept.back().to == axis.to * axis.count;
    if (even) {
      kept.back() = {kept.back().count * axis.count, axis.from, axis.to};
    } else {
      kept.push_back(axis);
    }
  }
  return kept;
}

template <typename T>
void copy_rows(const CopyTile& tile, const std::byte* from, std::byte* to, std::uint64_t flip) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t j = 0; j < tile.second.count; ++j) {
    move_row(from + j * tile.second.from * kSize, to + j * tile.second.to * kSize, tile.inner.count * kSize, flip);
  }
}

template <typename T>
void repeat_element(const CopyTile& tile, const std::byte* from, std::byte* to, std::uint64_t flip) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  for (std::int64_t j = 0; j < tile.second.count; ++j) {
    std::fill_n(y + j * tile.second.to, tile.inner.count, static_cast<T>(x[j * tile.second.from] ^ flip));
  }
}

template <typename T>
void copy_elements(const CopyTile& tile, const std::byte* from, std::byte* to, std::uint64_t flip) {
  for (std::int64_t j = 0; j < tile.second.count; ++j) {
    const T* x = reinterpret_cast<const T*>(from) + j * tile.second.from;
    T* y = reinterpret_cast<T*>(to) + j * tile.second.to;
    for (std::int64_t i = 0; i < tile.inner.count; ++i)
      y[i * tile.inner.to] = static_cast<T>(x[i * tile.inner.from] ^ flip);
  }
}

template <typename T>
void transpose_tile(const CopyTile& tile, const std::byte* from, std::byte* to, std::uint64_t flip) {
  transpose<T>(reinterpret_cast<const T*>(from), tile.inner.from, reinterpret_cast<T*>(to), tile.second.to,
               tile.second.count, tile.inner.count, flip);
}

std::int64_t parts_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

}  // namespace

StridedCopy::StridedCopy(std::vector<CopyAxis> axes, std::int64_t from_start, std::int64_t to_start,
                         std::int64_t element_bytes, std::uint64_t flip, ThreePlanes three_planes)
    : outer_(merged(axes)),
      from_start_(from_start),
      to_start_(to_start),
      element_bytes_(element_bytes),
      flip_(flip),
      three_planes_(three_planes) {
  if (outer_.empty()) outer_.push_back({1, 1, 1});
  inner_ = outer_.back();
  outer_.pop_back();
  choose_second();
  for (const CopyAxis& axis : outer_) outers_ *= axis.count;
  if (element_bytes == 1) {
    choose_body<std::uint8_t>();
  } else if (element_bytes == 2) {
    choose_body<std::uint16_t>();
  } else {
    choose_body<std::uint32_t>();
  }
}

// The axis along which the source is dense, if the inner one is not; else the one before the inner one.
void StridedCopy::choose_second() {
  if (outer_.empty()) return;
  const auto dense = std::find_if(outer_.begin(), outer_.end(), [](const CopyAxis& axis) { return axis.from == 1; });
  const auto axis = dense == outer_.end() || inner_.from == 1 ? outer_.end() - 1 : dense;
  second_ = *axis;
  outer_.erase(axis);
}

template <typename T>
void StridedCopy::choose_body() {
  if (inner_.to == 1 && second_.from == 1 && inner_.from > 1 && second_.to > 0) {
    body_ = transpose_tile<T>;
    cut_sides();
  } else {
    const bool dense = inner_.to == 1;
    body_ = dense && inner_.from == 1 ? copy_rows<T> : dense && inner_.from == 0 ? repeat_element<T> : copy_elements<T>;
    width_ = std::min(inner_.count, kRowPieceBytes / element_bytes_);
    height_ = std::min(second_.count, kRowPieceBytes / element_bytes_ / width_);
  }
  if (body_ != transpose_tile<std::uint8_t> || inner_.count != 3 || second_.to != 3) three_planes_ = nullptr;
  inner_tiles_ = parts_of(inner_.count, width_);
  second_tiles_ = parts_of(second_.count, height_);
  const bool whole = inner_tiles_ == 1 && second_tiles_ == 1;
  outers_a_piece_ = whole ? std::max(std::int64_t{1}, kRowPieceBytes / element_bytes_ / (width_ * height_)) : 1;
  groups_ = parts_of(outers_, outers_a_piece_);
}

// Tiles of a transpose: the shorter side short enough, the longer one as the budget allows, in whole blocks.
void StridedCopy::cut_sides() {
  const bool wide = inner_.count > second_.count;
  std::int64_t& shorter = wide ? height_ : width_;
  std::int64_t& longer = wide ? width_ : height_;
  shorter = std::min({inner_.count, second_.count, kTransposeSide});
  longer = std::min(std::max(inner_.count, second_.count), kTransposePieceElements / shorter / 8 * 8);
}

void StridedCopy::run(const std::byte* from, std::byte* to, Part part) const {
  for (std::int64_t piece = part.begin; piece < part.end; ++piece) {
    const std::int64_t i = piece % inner_tiles_ * width_;
    const std::int64_t j = piece / inner_tiles_ % second_tiles_ * height_;
    const CopyTile tile{{std::min(height_, second_.count - j), second_.from, second_.to},
                        {std::min(width_, inner_.count - i), inner_.from, inner_.to}};
    const std::int64_t first = piece / inner_tiles_ / second_tiles_ * outers_a_piece_;
    const std::int64_t last = std::min(first + outers_a_piece_, outers_);
    for (std::int64_t outer = first; outer < last; ++outer) {
      std::int64_t x = from_start_ + i * inner_.from + j * second_.from, y = to_start_ + i * inner_.to + j * second_.to;
      std::int64_t rest = outer;
      for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
        x += rest % axis->count * axis->from;
        y += rest % axis->count * axis->to;
        rest /= axis->count;
      }
      const std::byte* source = from + x * element_bytes_;
      std::byte* target = to + y * element_bytes_;
      if (three_planes_ != nullptr) {
        three_planes_(reinterpret_cast<const std::uint8_t*>(source), tile.inner.from, reinterpret_cast<std::uint8_t*>(target),
                      tile.second.count, static_cast<std::uint8_t>(flip_));
      } else {
        body_(tile, source, target, flip_);
      }
    }
  }
}

}  // namespace cvm
