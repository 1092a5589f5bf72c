// 3x3 convolutions of stride 1 with 16 products for every four outputs instead of 36 (Winograd's F(2x2, 3x3)), in
// integers: y = A'[(G g G') * (B' d B)]A with G doubled is 4 y exactly, and no value of it needs more than 16 bits
// before the sums. Sums are taken modulo 2^32, so y is known where it is proven to lie within 2^29, which the plan
// marks (`small`). It pays where the dot products of a processor take 16-bit integers anyway.
#include <algorithm>
#include <array>

#include "linear.h"

namespace cvm {
namespace {

constexpr std::int64_t kPlaces = 16;                       // of a 4x4 tile
constexpr std::int64_t kTransformedBytes = 96 * 1024;      // of one block of tiles: they stay in the second cache
constexpr std::int64_t kMaxWeightBytes = 4 * 1024 * 1024;  // beyond, reading weights would cost more than it saves
constexpr std::int64_t kNearBytes = 256 * 1024;            // weights that are still in the second cache for the next block
constexpr std::int64_t kEnoughPieces = 8;                  // so that a few threads get equal shares

// G g G' with G = [2 0 0; 1 1 1; 1 -1 1; 0 0 2], in panels: place, pair of channels, column, channel of the pair.
class WinogradWeights final : public Packing {
 public:
  WinogradWeights(std::span<const std::int8_t> weights, const ConvGeometry& geometry, std::int64_t depth, std::int64_t width,
                  std::int64_t panels) {
    auto* to = room<std::int16_t>(static_cast<std::size_t>(panels * kPlaces * depth * width));
    for (std::int64_t output = 0; output < geometry.outputs; ++output) {
      for (std::int64_t channel = 0; channel < geometry.channels; ++channel) {
        const auto values = transformed(weights.data() + output * 9 * geometry.channels + channel, geometry.channels);
        for (std::int64_t place = 0; place < kPlaces; ++place) {
          const std::int64_t panel = output / width, column = output % width;
          const std::int64_t start = (panel * kPlaces + place) * depth * width;
          to[start + (channel / 2 * width + column) * 2 + channel % 2] = values[static_cast<std::size_t>(place)];
        }
      }
    }
  }
  const std::int16_t* first() const { return reinterpret_cast<const std::int16_t*>(data()); }

 private:
  // Of one output and channel; `pitch` elements from one tap to the next.
  static std::array<std::int16_t, kPlaces> transformed(const std::int8_t* g, std::int64_t pitch) {
    constexpr int kG[4][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};
    int rows[4][3] = {};  // G g
    for (int i = 0; i < 4; ++i) {
      for (int q = 0; q < 3; ++q) {
        for (int p = 0; p < 3; ++p) rows[i][q] += kG[i][p] * g[(p * 3 + q) * pitch];
      }
    }
    std::array<std::int16_t, kPlaces> values{};
    for (std::size_t place = 0; place < kPlaces; ++place) {
      int value = 0;
      for (int q = 0; q < 3; ++q) value += rows[place / 4][q] * kG[place % 4][q];
      values[place] = static_cast<std::int16_t>(value);
    }
    return values;
  }
};

class Winograd final : public Kernel {
 public:
  Winograd(const StepCall& call, const ConvGeometry& geometry, Epilogue epilogue)
      : kernels_(*call.kernels.products),
        g_(geometry),
        x_(call.operand(0)),
        epilogue_(std::move(epilogue)),
        depth_(divide_up(geometry.channels, 16) * 16),
        width_(2 * call.kernels.products->lanes),
        panels_(divide_up(geometry.outputs, width_)),
        outside_(static_cast<std::size_t>(depth_), static_cast<std::uint8_t>(geometry.zero_point)),
        weights_(call.packings.share<WinogradWeights>(call.spec.parameters[0], {geometry.channels}, [&] {
          return std::make_unique<WinogradWeights>(call.parameter(0).as<std::int8_t>(), geometry, depth_, width_, panels_);
        })),
        bias_(static_cast<std::size_t>(panels_ * width_), 0) {
    const auto bias = call.parameter(1).as<std::int32_t>();
    std::copy(bias.begin(), bias.end(), bias_.begin());
    const std::int64_t by_cache = kTransformedBytes / (kPlaces * depth_ * 2) / kernels_.rows * kernels_.rows;
    const std::int64_t most = std::clamp(by_cache, 2 * kernels_.rows, kMaxTileRows);
    tile_blocks_ = divide_up(tiles(), most);
    panel_blocks_ = std::min(panels_, divide_up(kEnoughPieces, tile_blocks_));
  }

  static std::int64_t weight_bytes(const ConvGeometry& g) { return kPlaces * g.channels * g.outputs * 2; }

  std::int64_t pieces() const override { return tile_blocks_ * panel_blocks_; }
  const char* products() const override { return "winograd"; }
  std::int64_t multiply_accumulates() const override { return g_.out_pixels() * g_.outputs * 9 * g_.channels; }
  const char* epilogue() const override { return epilogue_.path(); }
  std::int64_t scratch_bytes() const override { return epilogue_.scratch_bytes() + transformed_bytes() + sums_bytes(); }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    auto* transformed = reinterpret_cast<std::int16_t*>(scratch + epilogue_.scratch_bytes());
    std::int64_t transformed_block = -1;  // the block whose tiles are transformed
    for (std::int64_t piece = part.begin; piece < part.end; ++piece) {
      const std::int64_t block = piece / panel_blocks_, share = piece % panel_blocks_;
      const std::int64_t first = tiles() * block / tile_blocks_, last = tiles() * (block + 1) / tile_blocks_;
      if (transformed_block != block) transform(buffers, first, last, transformed);
      transformed_block = block;
      for (std::int64_t panel = panels_ * share / panel_blocks_; panel < panels_ * (share + 1) / panel_blocks_;
           ++panel) {
        multiply(panel, last - first, transformed, scratch);
        finish(buffers, panel, first, last, scratch);
      }
    }
  }

 private:
  struct Tile2x2 {  // its number along both axes
    std::int64_t image, down, right;
  };

  std::int64_t tiles_down() const { return divide_up(g_.out_height, 2); }
  std::int64_t tiles_right() const { return divide_up(g_.out_width, 2); }
  std::int64_t tiles() const { return g_.batch * tiles_down() * tiles_right(); }
  std::int64_t transformed_bytes() const { return kPlaces * kMaxTileRows * depth_ * 2; }
  std::int64_t sums_bytes() const { return kPlaces * kMaxTileRows * width_ * 4; }
  std::int32_t* sums(std::byte* scratch) const {
    return reinterpret_cast<std::int32_t*>(scratch + epilogue_.scratch_bytes() + transformed_bytes());
  }
  Tile2x2 tile_at(std::int64_t tile) const {
    return {tile / tiles_right() / tiles_down(), tile / tiles_right() % tiles_down(), tile % tiles_right()};
  }

  // B' d B of every tile of the block: [place][tile][channel].
  void transform(const Buffers& buffers, std::int64_t first, std::int64_t last, std::int16_t* to) const {
    const auto* x = reinterpret_cast<const std::uint8_t*>(buffers.read(x_));
    const std::int64_t place_stride = (last - first) * depth_;
    for (std::int64_t tile = first; tile < last; ++tile) {
      const Tile2x2 at = tile_at(tile);
      const std::uint8_t* pixels[kPlaces];
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t v = at.down * 2 - g_.pad_top + i;
        for (std::int64_t j = 0; j < 4; ++j) {
          const std::int64_t u = at.right * 2 - g_.pad_left + j;
          const bool inside = v >= 0 && v < g_.height && u >= 0 && u < g_.width;
          pixels[i * 4 + j] =
              inside ? x + ((at.image * g_.height + v) * g_.width + u) * g_.pixel_pitch : outside_.data();
        }
      }
      kernels_.transform_tile(pixels, static_cast<std::int32_t>(g_.zero_point), g_.channels,
                              to + (tile - first) * depth_, place_stride);
    }
  }

  // One matrix product for each place: [place][tile][column].
  void multiply(std::int64_t panel, std::int64_t count, const std::int16_t* transformed, std::byte* scratch) const {
    alignas(64) static constexpr std::int32_t kNoBias[kMaxPanelColumns] = {};
    const bool far = weight_bytes(g_) > kNearBytes;
    const void* rows[kMaxTileRows];
    for (std::int64_t place = 0; place < kPlaces; ++place) {
      for (std::int64_t tile = 0; tile < count; ++tile) rows[tile] = transformed + (place * count + tile) * depth_;
      const std::int16_t* weights = weights_.first() + (panel * kPlaces + place) * depth_ * width_;
      ProductTask task{rows, 1, depth_, weights, kNoBias, count, 2};
      const bool last = panel + 1 == panels_ && place + 1 == kPlaces;
      if (far && !last) task.next = weights + depth_ * width_, task.next_bytes = depth_ * width_ * 2;
      kernels_.sums16(task, sums(scratch) + place * count * width_);
    }
  }

  // A'(sums)A of every tile, line by line of the result, then the stages.
  void finish(const Buffers& buffers, std::int64_t panel, std::int64_t first, std::int64_t last,
              std::byte* scratch) const {
    const std::int64_t columns = std::min(width_, g_.outputs - panel * width_), count = last - first;
    std::int64_t tile = first;
    while (tile < last) {
      const Tile2x2 at = tile_at(tile);
      const std::int64_t row_tiles = std::min(last - tile, tiles_right() - at.right);  // left in this row of tiles
      const std::int64_t pixels = std::min(2 * row_tiles, g_.out_width - 2 * at.right);
      for (std::int64_t line = 2 * at.down; line < std::min(2 * at.down + 2, g_.out_height); ++line) {
        std::int32_t* out = Epilogue::sums(scratch);
        kernels_.untransform_line(sums(scratch) + (tile - first) * width_, count * width_, line % 2, pixels,
                                  bias_.data() + panel * width_, width_, columns, out);
        const std::int64_t row = (at.image * g_.out_height + line) * g_.out_width + 2 * at.right;
        epilogue_.run(buffers, row, {pixels, columns, panel * width_}, scratch);
      }
      tile += row_tiles;
    }
  }

  const ProductKernels& kernels_;
  ConvGeometry g_;
  Operand x_;
  Epilogue epilogue_;
  std::int64_t depth_, width_, panels_;
  std::vector<std::uint8_t> outside_;
  const WinogradWeights& weights_;
  std::vector<std::int32_t> bias_;
  std::int64_t tile_blocks_ = 1, panel_blocks_ = 1;
};

}  // namespace

bool suits_winograd(const StepCall& call, const ConvGeometry& g) {
  const auto* small = call.ints("small", 1);
  return small && (*small)[0] == 1 && call.kernels.products->widens &&
         call.kernels.products->transform_tile != nullptr && call.operand(0).dtype == DType::i8 && g.groups == 1 &&
         g.kernel_height == 3 && g.kernel_width == 3 && g.stride_down == 1 && g.stride_right == 1 &&
         g.dilation_down == 1 && g.dilation_right == 1 && g.channels >= 16 && g.outputs >= 16 &&
         Winograd::weight_bytes(g) <= kMaxWeightBytes;
}

Made make_winograd(const StepCall& call, const ConvGeometry& geometry) {
  Expected<Epilogue> epilogue = Epilogue::make(call);
  if (!epilogue) return epilogue.problem();
  return Made(std::make_unique<Winograd>(call, geometry, std::move(*epilogue)));
}

}  // namespace cvm
