// 3x3 convolutions of stride 1 with 36 products for every sixteen outputs instead of 144 (Winograd's F(4x4, 3x3)), in integers. With
// G 24 times as large, or 12 in its last line, no value needs more than 16 bits before the sums, and y = A'[(G g G') * (B' d B)]A is
// 576 y exactly. Sums are taken modulo 2^32, where 9 has an inverse, and 64 y gives y where it is proven to fit 26 bits, which the
// plan marks (`fits26`).
#include <algorithm>
#include <array>
#include <cstring>

#include "linear.h"

namespace cvm {
namespace {

constexpr std::int64_t kEdge = 6;                                // of a tile of x
constexpr std::int64_t kPlaces = kEdge * kEdge;
constexpr std::int64_t kSide = 4;                                // of a tile of y
constexpr std::int64_t kTransformedBytes = 160 * 1024;           // of one block of tiles: they stay in the second cache
constexpr std::int64_t kMaxWeightBytes = 5 * 1024 * 1024;        // transformed ones take eight times as much memory
constexpr std::int64_t kNearBytes = 256 * 1024;                  // weights that are still in the second cache for the next block
constexpr std::int64_t kFarBytes = 2 * 1024 * 1024;              // weights beyond are read as slowly as
constexpr std::int64_t kFarTiles = 8;                            // so many tiles more are multiplied
constexpr std::int64_t kLeastChannels = 16;
constexpr std::int64_t kTransformInstructions = 276;             // of a tile, for each vector of channels, and of outputs
constexpr std::int64_t kLinesBytes = kSide * kTileElements * 4;  // of results
constexpr std::int64_t kEnoughPieces = 8;                        // so that a few threads get equal shares

std::int64_t weight_bytes(const ConvGeometry& g) { return kPlaces * g.channels * g.outputs * 2; }

std::int64_t depth_of(const ConvGeometry& g) { return divide_up(g.channels, 16) * 16; }

std::int64_t tiles_of(const ConvGeometry& g) { return g.batch * divide_up(g.out_height, kSide) * divide_up(g.out_width, kSide); }

std::int64_t tile_blocks(const ProductKernels& kernels, const ConvGeometry& g) {
  const std::int64_t by_cache = kTransformedBytes / (kPlaces * depth_of(g) * 2) / kernels.rows * kernels.rows;
  return divide_up(tiles_of(g), std::clamp(by_cache, 2 * kernels.rows, kMaxTileRows));
}

// What the processor does for each lane of a vector of 32-bit integers.
std::int64_t instructions(const ProductKernels& kernels, const ConvGeometry& g) {
  const std::int64_t far_tiles = weight_bytes(g) > kFarBytes ? kFarTiles * tile_blocks(kernels, g) : 0;
  const std::int64_t products = (tiles_of(g) + far_tiles) * kPlaces * depth_of(g) * g.outputs / 2;
  return products + tiles_of(g) * kTransformInstructions * (g.channels / 2 + g.outputs);
}

// The same without transforms: four products of bytes are one instruction, or two of 16-bit integers.
std::int64_t direct_instructions(const ProductKernels& kernels, const ConvGeometry& g) {
  return g.out_pixels() * 9 * g.channels * g.outputs / (kernels.widens ? 2 : 4);
}

// G g G' in panels: place, pair of channels, column, channel of the pair.
class WinogradWeights final : public Packing {
 public:
  WinogradWeights(std::span<const std::int8_t> weights, const ConvGeometry& geometry, std::int64_t depth, std::int64_t width,
                  std::int64_t panels) {
    auto* to = room<std::int16_t>(static_cast<std::size_t>(panels * kPlaces * depth * width));
    for (std::int64_t panel = 0; panel < panels; ++panel, to += kPlaces * depth * width) {
      const std::int64_t columns = std::min(width, geometry.outputs - panel * width);
      for (std::int64_t channel = 0; channel < geometry.channels; channel += kChunk) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const Chunks<kPlaces> values = transformed(taps_at(weights, geometry, panel * width + column, channel));
          store_pairs(values, to + (channel / 2 * width + column) * 2, width, depth * width);
        }
      }
    }
  }
  const std::int16_t* first() const { return reinterpret_cast<const std::int16_t*>(data()); }

 private:
  static constexpr std::int64_t kChunk = 8;  // channels side by side, a vector of any processor
  using Chunk = std::array<std::int16_t, kChunk>;
  template <std::size_t kCount>
  using Chunks = std::array<Chunk, kCount>;

  static void store_pairs(const Chunks<kPlaces>& values, std::int16_t* to, std::int64_t width, std::int64_t pitch) {
    for (const Chunk& chunk : values) {
      for (std::int64_t i = 0; i < kChunk; i += 2) std::memcpy(to + i * width, chunk.data() + i, 2 * sizeof(std::int16_t));
      to += pitch;
    }
  }

  // Zeros behind the last channel.
  static Chunks<9> taps_at(std::span<const std::int8_t> weights, const ConvGeometry& g, std::int64_t output, std::int64_t channel) {
    Chunks<9> taps{};
    const std::int8_t* from = weights.data() + output * 9 * g.channels + channel;
    const std::int64_t count = std::min(kChunk, g.channels - channel);
    for (Chunk& tap : taps) std::copy_n(from, count, tap.begin()), from += g.channels;
    return taps;
  }

  static Chunks<kPlaces> transformed(const Chunks<9>& g) {
    Chunks<kEdge * 3> lines;  // G g
    for (std::size_t q = 0; q < 3; ++q) transform_three(&g[q], 3, &lines[q], 3);
    Chunks<kPlaces> values;
    for (std::size_t i = 0; i < kEdge; ++i) transform_three(&lines[i * 3], 1, &values[i * kEdge], 1);
    return values;
  }

  // G g for one line or column of taps, `from` chunks apart, to six that are `step` apart.
  static void transform_three(const Chunk* g, std::size_t from, Chunk* to, std::size_t step) {
    for (std::size_t i = 0; i < kChunk; ++i) {
      const int first = g[0][i], middle = g[from][i], last = g[2 * from][i];
      to[0][i] = static_cast<std::int16_t>(6 * first);
      to[step][i] = static_cast<std::int16_t>(-4 * (first + middle + last));
      to[2 * step][i] = static_cast<std::int16_t>(-4 * (first - middle + last));
      to[3 * step][i] = static_cast<std::int16_t>(first + 2 * middle + 4 * last);
      to[4 * step][i] = static_cast<std::int16_t>(first - 2 * middle + 4 * last);
      to[5 * step][i] = static_cast<std::int16_t>(12 * last);
    }
  }
};

class Winograd final : public Kernel {
 public:
  Winograd(const StepCall& call, const ConvGeometry& geometry, Epilogue epilogue)
      : kernels_(*call.kernels.products),
        g_(geometry),
        x_(call.operand(0)),
        epilogue_(std::move(epilogue)),
        depth_(depth_of(geometry)),
        width_(2 * call.kernels.products->lanes),
        panels_(divide_up(geometry.outputs, width_)),
        outside_(static_cast<std::size_t>(depth_), static_cast<std::uint8_t>(geometry.zero_point)),
        weights_(call.packings.share<WinogradWeights>(call.spec.parameters[0], {geometry.channels}, [&] {
          return std::make_unique<WinogradWeights>(call.parameter(0).as<std::int8_t>(), geometry, depth_, width_, panels_);
        })),
        bias_(static_cast<std::size_t>(panels_ * width_), 0),
        tile_blocks_(tile_blocks(kernels_, geometry)),
        panel_blocks_(std::min(panels_, divide_up(kEnoughPieces, tile_blocks_))) {
    const auto bias = call.parameter(1).as<std::int32_t>();
    std::copy(bias.begin(), bias.end(), bias_.begin());
  }

  std::int64_t pieces() const override { return tile_blocks_ * panel_blocks_; }
  const char* products() const override { return "winograd"; }
  std::int64_t multiply_accumulates() const override { return g_.out_pixels() * g_.outputs * 9 * g_.channels; }
  const char* epilogue() const override { return epilogue_.path(); }
  std::int64_t scratch_bytes() const override { return epilogue_.scratch_bytes() + transformed_bytes() + sums_bytes() + kLinesBytes; }

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
  struct TilePlace {  // its number along both axes
    std::int64_t image, down, right;
  };

  std::int64_t tiles_down() const { return divide_up(g_.out_height, kSide); }
  std::int64_t tiles_right() const { return divide_up(g_.out_width, kSide); }
  std::int64_t tiles() const { return tiles_of(g_); }
  std::int64_t block_tiles() const { return divide_up(tiles(), tile_blocks_); }  // at most
  std::int64_t transformed_bytes() const { return kPlaces * block_tiles() * depth_ * 2; }
  std::int64_t sums_bytes() const { return kPlaces * block_tiles() * width_ * 4; }
  std::int32_t* sums(std::byte* scratch) const {
    return reinterpret_cast<std::int32_t*>(scratch + epilogue_.scratch_bytes() + transformed_bytes());
  }
  std::int32_t* lines(std::byte* scratch) const { return sums(scratch) + sums_bytes() / 4; }
  TilePlace tile_at(std::int64_t tile) const {
    return {tile / tiles_right() / tiles_down(), tile / tiles_right() % tiles_down(), tile % tiles_right()};
  }

  // B' d B of every tile of the block: [place][tile][channel].
  void transform(const Buffers& buffers, std::int64_t first, std::int64_t last, std::int16_t* to) const {
    const auto* x = reinterpret_cast<const std::uint8_t*>(buffers.read(x_));
    const std::int64_t place_stride = (last - first) * depth_;
    for (std::int64_t tile = first; tile < last; ++tile) {
      const TilePlace at = tile_at(tile);
      const std::uint8_t* pixels[kPlaces];
      for (std::int64_t i = 0; i < kEdge; ++i) {
        const std::int64_t v = at.down * kSide - g_.pad_top + i;
        for (std::int64_t j = 0; j < kEdge; ++j) {
          const std::int64_t u = at.right * kSide - g_.pad_left + j;
          const bool inside = v >= 0 && v < g_.height && u >= 0 && u < g_.width;
          pixels[i * kEdge + j] =
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

  // A'(sums)A of tiles side by side, then the stages, line by line of the result.
  void finish(const Buffers& buffers, std::int64_t panel, std::int64_t first, std::int64_t last,
              std::byte* scratch) const {
    const std::int64_t columns = std::min(width_, g_.outputs - panel * width_), count = last - first;
    std::int32_t* results = lines(scratch);
    for (std::int64_t tile = first; tile < last;) {
      const TilePlace at = tile_at(tile);
      const std::int64_t abreast = std::min({last - tile, tiles_right() - at.right, kTileElements / (kSide * width_)});
      kernels_.untransform_tiles(sums(scratch) + (tile - first) * width_, count * width_, abreast, bias_.data() + panel * width_, width_,
                                 columns, results);
      const std::int64_t pixels = std::min(kSide * abreast, g_.out_width - kSide * at.right);
      for (std::int64_t line = 0; line < std::min(kSide, g_.out_height - kSide * at.down); ++line) {
        const std::int64_t row = (at.image * g_.out_height + kSide * at.down + line) * g_.out_width + kSide * at.right;
        epilogue_.run_on(results + line * kSide * abreast * columns, buffers, row, {pixels, columns, panel * width_}, scratch);
      }
      tile += abreast;
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
  std::int64_t tile_blocks_, panel_blocks_;
};

}  // namespace

bool suits_winograd(const StepCall& call, const ConvGeometry& g) {
  const auto* fits26 = call.ints("fits26", 1);
  const ProductKernels& kernels = *call.kernels.products;
  return fits26 && (*fits26)[0] == 1 && kernels.transform_tile != nullptr && call.operand(0).dtype == DType::i8 && g.groups == 1 &&
         g.kernel_height == 3 && g.kernel_width == 3 && g.stride_down == 1 && g.stride_right == 1 && g.dilation_down == 1 &&
         g.dilation_right == 1 && g.channels >= kLeastChannels && g.outputs >= kLeastChannels &&
         weight_bytes(g) <= kMaxWeightBytes && instructions(kernels, g) < direct_instructions(kernels, g);
}

Made make_winograd(const StepCall& call, const ConvGeometry& geometry) {
  Expected<Epilogue> epilogue = Epilogue::make(call);
  if (!epilogue) return epilogue.problem();
  return Made(std::make_unique<Winograd>(call, geometry, std::move(*epilogue)));
}

}  // namespace cvm
