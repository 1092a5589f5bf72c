// Several outputs for each channel, in plain loops: rare, so only the common case of one output has kernels.
#include "depthwise_multiplied.h"

#include <algorithm>
#include <numeric>

#include "arithmetic.h"
#include "depthwise_pixels.h"
#include "depthwise_weights.h"
#include "linear_weights.h"

namespace cvm {
namespace {

constexpr std::int64_t kColumns = 128;  // outputs in a tile
constexpr std::int64_t kPixels = kTileElements / kColumns;

std::vector<std::int64_t> all_taps(const ConvGeometry& geometry) {
  std::vector<std::int64_t> taps(static_cast<std::size_t>(geometry.kernel_height * geometry.kernel_width));
  std::iota(taps.begin(), taps.end(), std::int64_t{0});
  return taps;
}

// Tap, output.
class MultipliedWeights final : public Packing {
 public:
  MultipliedWeights(std::span<const std::int8_t> w, std::size_t taps) {
    auto* to = room<std::int8_t>(w.size());
    for (std::size_t tap = 0; tap < taps; ++tap) {
      for (std::size_t o = 0; o < w.size() / taps; ++o) *to++ = w[o * taps + tap];
    }
  }
  const std::int8_t* first() const { return reinterpret_cast<const std::int8_t*>(data()); }
};

class MultipliedDepthwise final : public Kernel {
 public:
  MultipliedDepthwise(const StepCall& call, const ConvGeometry& geometry, Epilogue epilogue)
      : geometry_(geometry),
        epilogue_(std::move(epilogue)),
        x_(call.operand(0)),
        taps_(all_taps(geometry)),
        table_(geometry, size_of(x_.dtype), &taps_),
        weights_(call.packings.share<MultipliedWeights>(
            call.spec.parameters[0], {static_cast<std::int64_t>(taps_.size())},
            [&] { return std::make_unique<MultipliedWeights>(call.parameter(0).as<std::int8_t>(), taps_.size()); })) {
    for (std::int64_t bias : biases_without_zero_point(call, geometry)) {
      bias_.push_back(static_cast<std::int32_t>(static_cast<std::uint64_t>(bias)));
    }
  }

  std::int64_t pieces() const override { return geometry_.batch * geometry_.out_height; }
  std::int64_t scratch_bytes() const override {
    return epilogue_.scratch_bytes() + table_.entries(kPixels) * static_cast<std::int64_t>(sizeof(void*));
  }
  std::int64_t multiply_accumulates() const override {
    return geometry_.out_pixels() * weights_.bytes();
  }
  const char* epilogue() const override { return epilogue_.path(); }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    const void** table = reinterpret_cast<const void**>(scratch + epilogue_.scratch_bytes());
    const auto sum =
        x_.dtype == DType::i16 ? &MultipliedDepthwise::sum<std::int16_t> : &MultipliedDepthwise::sum<std::uint8_t>;
    for (std::int64_t row = part.begin; row < part.end; ++row) {
      for (std::int64_t first = 0; first < geometry_.out_width; first += kPixels) {
        const std::int64_t count = std::min(kPixels, geometry_.out_width - first);
        table_.fill(buffers.read(x_), row, first, count, table);
        for (std::int64_t column = 0; column < geometry_.outputs; column += kColumns) {
          const Tile tile{count, std::min(kColumns, geometry_.outputs - column), column};
          (this->*sum)(table, tile, Epilogue::sums(scratch));
          epilogue_.run(buffers, row * geometry_.out_width + first, tile, scratch);
        }
      }
    }
  }

 private:
  template <typename X>
  void sum(const void* const* table, const Tile& tile, std::int32_t* sums) const {
    const std::int64_t multiplier = geometry_.group_outputs();
    for (std::int64_t pixel = 0; pixel < tile.rows; ++pixel, sums += tile.width) {
      std::copy_n(bias_.data() + tile.channel, tile.width, sums);
      const std::int8_t* weights = weights_.first();
      for (std::size_t tap = 0; tap < taps_.size(); ++tap, ++table, weights += geometry_.outputs) {
        const X* x = static_cast<const X*>(*table);
        for (std::int64_t i = 0; i < tile.width; ++i) {
          const std::int64_t output = tile.channel + i;
          sums[i] = wrap_add(sums[i], x[output / multiplier] * weights[output]);
        }
      }
    }
  }

  ConvGeometry geometry_;
  Epilogue epilogue_;
  Operand x_;
  std::vector<std::int64_t> taps_;
  PixelTable table_;
  const MultipliedWeights& weights_;
  std::vector<std::int32_t> bias_;
};

}  // namespace

Made make_depthwise_multiplied(const StepCall& call, const ConvGeometry& geometry) {
  CVM_REQUIRE(!in_halves(call), "several outputs of a channel do not take weights in halves");
  Expected<Epilogue> epilogue = Epilogue::make(call);
  if (!epilogue) return epilogue.problem();
  return Made(std::make_unique<MultipliedDepthwise>(call, geometry, std::move(*epilogue)));
}

}  // namespace cvm
