// conv2d_transpose of one group as products. A place of x and the few before it reach as many neighbouring pixels of the
// result as the stride is long, each by taps of its own: the outputs of those pixels are columns of one row of products.
#include <algorithm>
#include <vector>

#include "linear.h"
#include "transposed_weights.h"

namespace cvm {
namespace {

constexpr std::int64_t kLineBytes = 128 * 1024;  // widened places of x that stay in the second cache while all outputs pass
constexpr std::int64_t kEnoughPieces = 32;       // so that a few threads get equal shares

std::int64_t divide_down(std::int64_t x, std::int64_t y) { return x / y - (x % y < 0 ? 1 : 0); }

class Transposed final : public Kernel {
 public:
  Transposed(const StepCall& call, const ConvGeometry& geometry, Epilogue epilogue)
      : g_(geometry),
        x_(call.operand(0)),
        kernels_(*call.kernels.products),
        elements_(*call.kernels.elements),
        epilogue_(std::move(epilogue)),
        weights_(TransposedWeights::of(call, geometry)) {
    const auto bias = call.parameter(1).as<std::int32_t>();
    bias_.assign(bias.begin(), bias.end());
    biases_ = weights_.biases(bias);
    outside_.assign(static_cast<std::size_t>(depth()), 0);
    cut();
  }

  std::int64_t pieces() const override { return g_.batch * g_.out_height * strips_; }
  std::int64_t scratch_bytes() const override {
    return epilogue_.scratch_bytes() + sum_bytes() + pointer_bytes() + lines_ * line_places_ * depth() * 2;
  }
  const char* epilogue() const override { return epilogue_.path(); }
  const char* products() const override { return "words"; }
  std::int64_t multiply_accumulates() const override { return g_.batch * g_.height * g_.width * g_.outputs * g_.row(); }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    for (std::int64_t piece = part.begin; piece < part.end; ++piece) {
      const std::int64_t row = piece / strips_;
      const Strip strip = strip_of(row, piece % strips_);
      widen(buffers.read(x_), row / g_.out_height, strip, lines(scratch));
      for (const ColumnBlock& block : weights_.blocks()) {
        for (std::int64_t first = strip.first, last; first < strip.last; first = last) {
          last = tile_end(first, strip.last, block.outputs);
          sum(strip, block, first, last, scratch);
          epilogue_.run(buffers, row * g_.out_width + first, {last - first, block.outputs, block.channel}, scratch);
        }
      }
    }
  }

 private:
  // Pixels [first, last) of a row of the result, what reaches them in x, and by which taps down.
  struct Strip {
    std::int64_t first, last;
    std::int64_t residue, tap, taps;  // the first tap of the residue that lies inside x, and how many do
    std::int64_t line;                // of x under that tap; the others lie before it
    std::int64_t left, right;         // places [left, right) of those lines
  };

  std::int64_t depth() const { return weights_.depth(); }
  static std::int64_t sum_bytes() { return kMaxTileRows * kMaxPanelColumns * 4; }
  std::int64_t pointer_bytes() const {
    return whole_lines(lines_ * weights_.taps() * kMaxTileRows * std::int64_t{sizeof(void*)});
  }
  std::int32_t* sums(std::byte* scratch) const {
    return reinterpret_cast<std::int32_t*>(scratch + epilogue_.scratch_bytes());
  }
  const void** pointers(std::byte* scratch) const {
    return reinterpret_cast<const void**>(scratch + epilogue_.scratch_bytes() + sum_bytes());
  }
  std::int16_t* lines(std::byte* scratch) const {
    return reinterpret_cast<std::int16_t*>(scratch + epilogue_.scratch_bytes() + sum_bytes() + pointer_bytes());
  }

  // Strips with no more of x under them than the cache holds, and enough of them for several threads.
  void cut() {
    lines_ = std::min(g_.height, taps_of(0, g_.stride_down, g_.kernel_height));
    const std::int64_t places = divide_up(g_.out_width, g_.stride_right), rows = g_.batch * g_.out_height;
    const std::int64_t by_pieces = divide_up(places, divide_up(kEnoughPieces, rows));
    const std::int64_t by_cache = kLineBytes / (lines_ * depth() * 2);
    const std::int64_t strip_places = std::max(kMaxTileRows, std::min(by_pieces, by_cache));
    strip_pixels_ = strip_places * g_.stride_right;
    strips_ = divide_up(g_.out_width, strip_pixels_);
    line_places_ = std::min(g_.width, strip_places + weights_.taps());
  }

  // The place of x that first reaches this pixel, if it lies inside.
  std::int64_t place_of(std::int64_t pixel) const { return divide_down(pixel - g_.pad_left, g_.stride_right); }

  Strip strip_of(std::int64_t row, std::int64_t number) const {
    Strip strip{};
    strip.first = number * strip_pixels_;
    strip.last = std::min(g_.out_width, strip.first + strip_pixels_);
    const std::int64_t down = row % g_.out_height - g_.pad_top, line = divide_down(down, g_.stride_down);
    strip.residue = down - line * g_.stride_down;
    strip.tap = std::max<std::int64_t>(0, line - (g_.height - 1));
    strip.taps = std::min(taps_of(strip.residue, g_.stride_down, g_.kernel_height), line + 1) - strip.tap;
    strip.line = line - strip.tap;
    strip.left = std::max<std::int64_t>(0, place_of(strip.first) - weights_.taps() + 1);
    strip.right = std::min(g_.width, place_of(strip.last - 1) + 1);
    return strip;
  }

  // The pixels of all those lines without their zero point.
  void widen(const std::byte* x, std::int64_t image, const Strip& strip, std::int16_t* to) const {
    const auto zero_point = static_cast<std::int32_t>(g_.zero_point);
    const bool whole = g_.pixel_pitch == g_.channels && depth() == g_.channels;
    const std::int64_t count = whole ? g_.channels * (strip.right - strip.left) : g_.channels;
    for (std::int64_t tap = 0; tap < strip.taps && strip.left < strip.right; ++tap) {
      const std::int64_t start = ((image * g_.height + strip.line - tap) * g_.width + strip.left) * g_.pixel_pitch;
      std::int16_t* next = to + tap * line_places_ * depth();
      for (std::int64_t v = strip.left; v < (whole ? strip.left + 1 : strip.right); ++v, next += depth()) {
        const std::int64_t at = start + (v - strip.left) * g_.pixel_pitch;
        if (x_.dtype == DType::i16) {
          std::copy_n(reinterpret_cast<const std::int16_t*>(x) + at, count, next);
        } else {
          elements_.centre8(zero_point, count, reinterpret_cast<const std::uint8_t*>(x) + at, next);
        }
        if (!whole) std::fill(next + count, next + depth(), std::int16_t{0});
      }
    }
  }

  // Tiles end where a place of x reaches its last pixel, if the stride is not longer than they are.
  std::int64_t tile_end(std::int64_t first, std::int64_t last, std::int64_t outputs) const {
    const std::int64_t end = first + kTileElements / outputs;
    if (end >= last) return last;
    const std::int64_t boundary = place_of(end) * g_.stride_right + g_.pad_left;
    return boundary > first ? boundary : end;
  }

  void sum(const Strip& strip, const ColumnBlock& block, std::int64_t first, std::int64_t last, std::byte* scratch) const {
    std::int32_t* out = Epilogue::sums(scratch);
    const std::int64_t begin = std::max<std::int64_t>(0, place_of(first));
    const std::int64_t end = std::min(g_.width + weights_.taps() - 1, place_of(last - 1) + 1);
    const bool inside = begin == place_of(first) && end == place_of(last - 1) + 1;
    if (!inside || weights_.residues() < g_.stride_right || strip.taps <= 0) {  // no tap reaches some pixels
      const std::int32_t* bias = bias_.data() + block.channel;
      for (std::int64_t i = 0; i < last - first; ++i) std::copy_n(bias, block.outputs, out + i * block.outputs);
    }
    if (strip.taps <= 0) return;
    ProductTask task{pointers(scratch), strip.taps * weights_.taps(), depth(), nullptr, nullptr, 0, 0};
    for (std::int64_t place = begin; place < end; place += kMaxTileRows) {
      task.row_count = std::min(kMaxTileRows, end - place);
      point(strip, place, task.row_count, lines(scratch), pointers(scratch));
      const std::int64_t start = (place * g_.stride_right + g_.pad_left - first) * block.outputs;
      const std::int64_t step = g_.stride_right * block.outputs, size = (last - first) * block.outputs;
      for (const ColumnPanel& panel : block.panels) {
        task.weights = weights_.at(strip.residue, panel, strip.tap);
        task.bias = biases_.data() + panel.place;
        task.vectors = panel.vectors;
        kernels_.sums16(task, sums(scratch));
        scatter(task, panel, start + panel.first, step, size, scratch);
      }
    }
  }

  // The runs of every row: places of x back from its own, line by line; or zeros.
  void point(const Strip& strip, std::int64_t place, std::int64_t rows, const std::int16_t* lines, const void** to) const {
    for (std::int64_t down = 0; down < strip.taps; ++down, lines += line_places_ * depth()) {
      for (std::int64_t tap = 0; tap < weights_.taps(); ++tap, to += kMaxTileRows) {
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::int64_t v = place + r - tap;
          const bool inside = strip.left <= v && v < strip.right;
          to[r] = inside ? lines + (v - strip.left) * depth() : outside_.data();
        }
      }
    }
  }

  // The columns of a row are neighbours in the tile of `size` integers, from `start` on; what lies outside it is left out.
  void scatter(const ProductTask& task, const ColumnPanel& panel, std::int64_t start, std::int64_t step, std::int64_t size,
               std::byte* scratch) const {
    const std::int32_t* from = sums(scratch);
    std::int32_t* out = Epilogue::sums(scratch);
    for (std::int64_t r = 0; r < task.row_count; ++r, from += panel.vectors * kernels_.lanes, start += step) {
      const std::int64_t begin = std::max<std::int64_t>(0, -start), end = std::min(panel.columns, size - start);
      for (std::int64_t c = begin; c < end; ++c) out[start + c] = from[c];
    }
  }

  ConvGeometry g_;
  Operand x_;
  const ProductKernels& kernels_;
  const ElementKernels& elements_;
  Epilogue epilogue_;
  const TransposedWeights& weights_;
  std::vector<std::int32_t> bias_;
  Aligned<std::int32_t> biases_;   // of each column of the panels
  Aligned<std::int16_t> outside_;  // a run of zeros
  std::int64_t strips_ = 1, strip_pixels_ = 1;  // of a row of the result
  std::int64_t lines_ = 1, line_places_ = 1;    // of x under a strip, at most
};

}  // namespace

Made make_step_conv2d_transpose(const StepCall& call) {
  Expected<ConvGeometry> geometry = conv2d_transpose_geometry(call);
  if (!geometry) return geometry.problem();
  if (geometry->groups > 1) return make_transposed_groups(call, *geometry);
  Expected<Epilogue> epilogue = Epilogue::make(call);
  if (!epilogue) return epilogue.problem();
  return Made(std::make_unique<Transposed>(call, *geometry, std::move(*epilogue)));
}

}  // namespace cvm
