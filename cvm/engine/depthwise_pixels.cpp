// Fills tables of input pixels.
#include "depthwise_pixels.h"

#include <algorithm>

namespace cvm {
namespace {

std::int64_t whole_groups(std::int64_t count) { return (count + kPixelGroup - 1) / kPixelGroup * kPixelGroup; }

}  // namespace

PixelTable::PixelTable(const ConvGeometry& geometry, std::int64_t element_bytes, const std::vector<std::int64_t>* taps)
    : geometry_(geometry),
      pixel_bytes_(geometry.pixel_pitch * element_bytes),
      taps_(taps == nullptr ? std::vector<std::int64_t>() : *taps),
      padding_(static_cast<std::size_t>(geometry.channels * element_bytes + kSlack),
               static_cast<std::byte>(element_bytes == 1 ? geometry.zero_point : 0)) {}

std::int64_t PixelTable::columns(std::int64_t count) const {
  return (whole_groups(count) - 1) * geometry_.stride_right + geometry_.kernel_width + 1;
}

std::int64_t PixelTable::entries(std::int64_t count) const {
  return is_square() ? columns(count) * geometry_.kernel_height
                     : whole_groups(count) * static_cast<std::int64_t>(taps_.size());
}

void PixelTable::fill(const std::byte* x, std::int64_t row, std::int64_t first, std::int64_t count,
                      const void** table) const {
  const std::byte* image = x + row / geometry_.out_height * geometry_.height * geometry_.width * pixel_bytes_;
  const std::int64_t top = row % geometry_.out_height * geometry_.stride_down - geometry_.pad_top;
  const std::int64_t left = first * geometry_.stride_right - geometry_.pad_left;
  return is_square() ? fill_square(image, top, left, count, table) : fill_general(image, top, left, count, table);
}

const std::byte* PixelTable::pixel(const std::byte* image, std::int64_t down, std::int64_t right) const {
  if (down < 0 || down >= geometry_.height || right < 0 || right >= geometry_.width) return padding_.data();
  return image + (down * geometry_.width + right) * pixel_bytes_;
}

// Padding, then neighbours, then padding.
void PixelTable::fill_square(const std::byte* image, std::int64_t top, std::int64_t left, std::int64_t count,
                             const void** table) const {
  const std::int64_t length = columns(count);
  const std::int64_t begin = std::clamp<std::int64_t>(-left, 0, length);
  const std::int64_t end = std::clamp(geometry_.width - left, begin, length);
  for (std::int64_t p = 0; p < geometry_.kernel_height; ++p, table += length) {
    const std::int64_t down = top + p * geometry_.dilation_down;
    const bool seen = down >= 0 && down < geometry_.height && begin < end;
    const std::int64_t stop = seen ? end : begin;
    std::fill_n(table, begin, padding_.data());
    const std::byte* from = seen ? image + (down * geometry_.width + left + begin) * pixel_bytes_ : image;
    for (std::int64_t column = begin; column < stop; ++column) table[column] = from + (column - begin) * pixel_bytes_;
    std::fill_n(table + stop, length - stop, padding_.data());
  }
}

bool PixelTable::inside(std::int64_t left) const {
  return left >= 0 && left + (geometry_.kernel_width - 1) * geometry_.dilation_right < geometry_.width;
}

// Where all columns of a pixel and of the one before lie inside x, their pointers differ by a stride.
void PixelTable::fill_general(const std::byte* image, std::int64_t top, std::int64_t left, std::int64_t count,
                              const void** table) const {
  const std::size_t slots = taps_.size();
  const std::int64_t stride = geometry_.stride_right;
  for (std::int64_t j = 0; j < count; ++j, table += slots, left += stride) {
    if (j > 0 && inside(left) && inside(left - stride)) {
      const void** before = table - slots;
      for (std::size_t slot = 0; slot < slots; ++slot) {
        const auto* from = static_cast<const std::byte*>(before[slot]);
        table[slot] = from + (from == padding_.data() ? 0 : stride * pixel_bytes_);
      }
      continue;
    }
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const std::int64_t p = taps_[slot] / geometry_.kernel_width, q = taps_[slot] % geometry_.kernel_width;
      table[slot] = taps_[slot] < 0
                        ? padding_.data()
                        : pixel(image, top + p * geometry_.dilation_down, left + q * geometry_.dilation_right);
    }
  }
  std::fill_n(table, (whole_groups(count) - count) * static_cast<std::int64_t>(slots), padding_.data());
}

}  // namespace cvm
