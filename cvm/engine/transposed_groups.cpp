// conv2d_transpose in groups, output by output: each pixel of the result gathers the few taps that reach it. (Of one group:
// transposed.cpp.)
#include <algorithm>
#include <vector>

#include "arithmetic.h"
#include "linear.h"

namespace cvm {
namespace {

constexpr std::int64_t kColumns = 256;  // outputs in a tile
constexpr std::int64_t kPixels = kTileElements / kColumns;
constexpr std::int64_t kExactTerms = 256;  // so many products of 16 and 8 bits sum to less than 2^31 in magnitude

// Signed sums let compilers use instructions that multiply and add. Only the total of many terms may wrap.
std::int32_t dot(const std::int16_t* x, const std::int16_t* w, std::int64_t count) {
  std::int32_t total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kExactTerms) {
    const std::int64_t end = std::min(count, begin + kExactTerms);
    std::int32_t sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += x[i] * w[i];
    total = wrap_add(total, sum);
  }
  return total;
}

// The taps along one axis that reach place `at` of the result, from the first on in steps of the stride: tap p reaches
// it from place (at - p) / stride of x, where that is whole and inside x.
struct Taps {
  std::int64_t first, last;
};

Taps taps_of(std::int64_t at, std::int64_t stride, std::int64_t size, std::int64_t kernel) {
  const std::int64_t residue = (at % stride + stride) % stride;
  const std::int64_t beyond = at - (size - 1) * stride;  // smaller taps would read after the end of x
  return {beyond > residue ? beyond : residue, std::min(at, kernel - 1)};
}

// Tap, output, channel of the group.
class GroupWeights final : public Packing {
 public:
  GroupWeights(std::span<const std::int8_t> w, const ConvGeometry& geometry) {
    const std::int64_t depth = geometry.group_channels(), taps = geometry.kernel_height * geometry.kernel_width;
    auto* to = room<std::int16_t>(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const auto from = static_cast<std::int64_t>(i);
      const std::int64_t output = from / (taps * depth), tap = from / depth % taps;
      to[(tap * geometry.outputs + output) * depth + from % depth] = w[i];
    }
  }
  const std::int16_t* first() const { return reinterpret_cast<const std::int16_t*>(data()); }
};

class TransposedGroups final : public Kernel {
 public:
  TransposedGroups(const StepCall& call, const ConvGeometry& geometry, Epilogue epilogue)
      : geometry_(geometry),
        epilogue_(std::move(epilogue)),
        x_(call.operand(0)),
        weights_(call.packings.share<GroupWeights>(
            call.spec.parameters[0], {geometry.kernel_height * geometry.kernel_width, geometry.group_channels()},
            [&] { return std::make_unique<GroupWeights>(call.parameter(0).as<std::int8_t>(), geometry); })) {
    const auto b = call.parameter(1).as<std::int32_t>();
    bias_.assign(b.begin(), b.end());
  }

  std::int64_t pieces() const override { return geometry_.batch * geometry_.out_height; }
  std::int64_t scratch_bytes() const override { return epilogue_.scratch_bytes() + geometry_.channels * 2; }
  const char* epilogue() const override { return epilogue_.path(); }
  std::int64_t multiply_accumulates() const override {
    return geometry_.batch * geometry_.height * geometry_.width * geometry_.outputs * geometry_.row();
  }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    for (std::int64_t row = part.begin; row < part.end; ++row) {
      for (std::int64_t first = 0; first < geometry_.out_width; first += kPixels) {
        const std::int64_t count = std::min(kPixels, geometry_.out_width - first);
        for (std::int64_t column = 0; column < geometry_.outputs; column += kColumns) {
          const Tile tile{count, std::min(kColumns, geometry_.outputs - column), column};
          sum(buffers.read(x_), row, first, tile, scratch);
          epilogue_.run(buffers, row * geometry_.out_width + first, tile, scratch);
        }
      }
    }
  }

 private:
  void sum(const std::byte* x, std::int64_t row, std::int64_t first, const Tile& tile, std::byte* scratch) const {
    std::int32_t* sums = Epilogue::sums(scratch);
    auto* pixel = reinterpret_cast<std::int16_t*>(scratch + epilogue_.scratch_bytes());
    const std::int64_t down = row % geometry_.out_height - geometry_.pad_top;
    const Taps rows = taps_of(down, geometry_.stride_down, geometry_.height, geometry_.kernel_height);
    const std::int64_t image = row / geometry_.out_height * geometry_.height;
    for (std::int64_t j = 0; j < tile.rows; ++j, sums += tile.width) {
      std::copy_n(bias_.data() + tile.channel, tile.width, sums);
      const std::int64_t right = first + j - geometry_.pad_left;
      const Taps columns = taps_of(right, geometry_.stride_right, geometry_.width, geometry_.kernel_width);
      for (std::int64_t p = rows.first; p <= rows.last; p += geometry_.stride_down) {
        for (std::int64_t q = columns.first; q <= columns.last; q += geometry_.stride_right) {
          const std::int64_t u = (down - p) / geometry_.stride_down, v = (right - q) / geometry_.stride_right;
          centre(x, (image + u) * geometry_.width + v, tile, pixel);
          add_tap(pixel, p * geometry_.kernel_width + q, tile, sums);
        }
      }
    }
  }

  // One pixel of x without its zero point, as far as the tile's groups read it.
  void centre(const std::byte* x, std::int64_t number, const Tile& tile, std::int16_t* to) const {
    const std::int64_t begin = group_of(tile.channel) * geometry_.group_channels();
    const std::int64_t end = (group_of(tile.channel + tile.width - 1) + 1) * geometry_.group_channels();
    const std::int64_t start = number * geometry_.pixel_pitch;
    if (x_.dtype == DType::i16) {
      std::copy_n(reinterpret_cast<const std::int16_t*>(x) + start + begin, end - begin, to + begin);
      return;
    }
    const auto* from = reinterpret_cast<const std::uint8_t*>(x) + start;
    const auto zero_point = static_cast<std::int32_t>(geometry_.zero_point);
    for (std::int64_t c = begin; c < end; ++c) to[c] = static_cast<std::int16_t>(from[c] - zero_point);
  }

  std::int64_t group_of(std::int64_t output) const { return output / geometry_.group_outputs(); }

  void add_tap(const std::int16_t* pixel, std::int64_t tap, const Tile& tile, std::int32_t* sums) const {
    const std::int64_t depth = geometry_.group_channels();
    const std::int16_t* weights = weights_.first() + (tap * geometry_.outputs + tile.channel) * depth;
    for (std::int64_t i = 0; i < tile.width; ++i, weights += depth) {
      sums[i] = wrap_add(sums[i], dot(pixel + group_of(tile.channel + i) * depth, weights, depth));
    }
  }

  ConvGeometry geometry_;
  Epilogue epilogue_;
  Operand x_;
  const GroupWeights& weights_;
  std::vector<std::int32_t> bias_;
};

}  // namespace

Made make_transposed_groups(const StepCall& call, const ConvGeometry& geometry) {
  Expected<Epilogue> epilogue = Epilogue::make(call);
  if (!epilogue) return epilogue.problem();
  return Made(std::make_unique<TransposedGroups>(call, geometry, std::move(*epilogue)));
}

}  // namespace cvm
