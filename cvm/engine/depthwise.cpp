// One input channel and one output for each group: no sums over channels, so that vectors run along them. Blocks of
// channels stay in registers while a kernel walks along a row of pixels.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "depthwise_multiplied.h"
#include "depthwise_pixels.h"
#include "depthwise_weights.h"
#include "linear.h"
#include "linear_weights.h"

namespace cvm {
namespace {

constexpr std::int64_t kCacheBytes =
    24 * 1024;  // of input that one walk over all blocks may touch: most of a first cache
constexpr std::int64_t kMaxSquarePixels = 64;
constexpr std::int64_t kMaxGeneralPixels = 16;  // its table has a pointer for each tap
constexpr std::int64_t kTileColumns = 128;
constexpr std::int64_t kMinPieces = 16;  // rows are divided by channels until there are so many, for threads to share
constexpr std::int64_t kMinPieceChannels = 64;
constexpr std::int64_t kMaxTapsOfBytes = 65793;  // sums of so many products of a byte and a weight fit 32 bits
constexpr std::int64_t kMaxTapsOfWords = 511;
constexpr std::int64_t kMaxWeights = 65535;  // sums of words with weights of so much together fit 32 bits

bool is_square(const ConvGeometry& geometry, const StepCall& call) {
  return call.kernels.depthwise->square != nullptr && geometry.kernel_height == 3 && geometry.kernel_width == 3 &&
         geometry.dilation_right == 1 && geometry.stride_right <= 2;
}

// The tap in each slot, -1 for none.
std::vector<std::int64_t> slots_of(const ConvGeometry& geometry, const StepCall& call) {
  const DepthwiseKernels& kernels = *call.kernels.depthwise;
  if (is_square(geometry, call)) return {kernels.square, kernels.square + kernels.square_slots};
  const std::int64_t taps = geometry.kernel_height * geometry.kernel_width;
  const std::int64_t step = call.operand(0).dtype == DType::i16 ? kernels.step16 : kernels.step8;
  std::vector<std::int64_t> slots(static_cast<std::size_t>(divide_up(taps, step) * step), -1);
  for (std::int64_t tap = 0; tap < taps; ++tap) slots[static_cast<std::size_t>(tap)] = tap;
  return slots;
}

// Whether sums fit 32 bits without their bias, which kernels add in 64.
bool sums_fit(const StepCall& call, std::int64_t taps) {
  const bool words = call.operand(0).dtype == DType::i16;
  if (!in_halves(call)) return taps <= (words ? kMaxTapsOfWords : kMaxTapsOfBytes);
  const std::vector<std::int16_t> weights = whole_weights(call);
  for (std::size_t first = 0; first < weights.size(); first += static_cast<std::size_t>(taps)) {
    std::int64_t total = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) total += std::abs(weights[first + static_cast<std::size_t>(tap)]);
    if (total > kMaxWeights) return false;
  }
  return true;
}

// What no sum of products of these dtypes is larger than.
std::int64_t greatest_sum(const StepCall& call, const ConvGeometry& geometry) {
  if (in_halves(call)) return kMaxWeights << 15;
  const std::int64_t taps = geometry.kernel_height * geometry.kernel_width;
  return taps << (call.operand(0).dtype == DType::i16 ? 22 : 15);
}

// Whether 32 bits hold every bias and any sum of products, which is no larger than `greatest`.
bool fit_with_sums(const std::vector<std::int64_t>& biases, std::int64_t greatest) {
  return std::all_of(biases.begin(), biases.end(), [greatest](std::int64_t bias) { return std::abs(bias) <= INT32_MAX - greatest; });
}

// What follows the sums, where kernels can do all of it in registers: a rescale to stored bytes or to 16 bits, perhaps a clamp.
struct RegisterEpilogue {
  DepthwiseScales scales;
  std::int32_t low, high;
  std::int64_t run_channels;  // so many of the first channels are taken by runs of blocks
};

std::optional<RegisterEpilogue> register_epilogue(const StepCall& call, const ConvGeometry& geometry,
                                                  const Chain& chain) {
  const auto& specs = call.spec.stages;
  const auto is = [&](std::size_t place, Opcode opcode) {
    return specs[place].opcode == opcode && specs[place].sources == std::vector<int>{static_cast<int>(place)};
  };
  if (specs.empty() || specs.size() > 2 || !is(0, Opcode::rescale_) || (specs.size() == 2 && !is(1, Opcode::clamp_)))
    return {};
  const Stage &rescale = chain.stages().front(), &last = chain.stages().back();
  const bool words = call.operand(0).dtype == DType::i16;
  const DepthwiseKernels& kernels = *call.kernels.depthwise;
  const bool to_bytes = call.result().biased() && rescale.dtype == DType::i8;
  const bool to_words = words && kernels.words16 != nullptr && call.result().dtype == DType::i16 && rescale.dtype == DType::i16;
  if ((!to_bytes && !to_words) || !DepthwiseScales::fits(rescale)) return {};
  if (!sums_fit(call, geometry.kernel_height * geometry.kernel_width)) return {};
  const std::vector<std::int64_t> biases = biases_without_zero_point(call, geometry);
  if (kernels.adds_bias && !fit_with_sums(biases, greatest_sum(call, geometry))) return {};
  const DepthwiseRuns& runs = runs_of(kernels, words);
  const std::int64_t run = runs.blocks * kernels.lanes;
  const std::int64_t run_channels = runs.blocks > 1 && is_square(geometry, call) ? geometry.channels / run * run : 0;
  return RegisterEpilogue{DepthwiseScales(rescale, biases, kernels, runs, run_channels),
                          last.data.low, last.data.high, run_channels};
}

class Depthwise final : public Kernel {
 public:
  Depthwise(const StepCall& call, const ConvGeometry& geometry, Epilogue epilogue)
      : geometry_(geometry),
        kernels_(*call.kernels.depthwise),
        runs_(runs_of(kernels_, call.operand(0).dtype == DType::i16)),
        epilogue_(std::move(epilogue)),
        registers_(register_epilogue(call, geometry, epilogue_.chain())),
        x_(call.operand(0)),
        result_(call.result()),
        slots_(slots_of(geometry, call)),
        table_(geometry, size_of(x_.dtype), is_square(geometry, call) ? nullptr : &slots_),
        weights_(DepthwiseWeights::of(call, geometry, slots_, run_channels())),
        biases_(weights_.in_lanes(biases_without_zero_point(call, geometry))) {
    const std::int64_t chunks =
        std::min(divide_up(kMinPieces, rows()), divide_up(geometry_.channels, kMinPieceChannels));
    const std::int64_t block = kernels_.lanes * (run_channels() == 0 ? 1 : runs_.blocks);
    chunk_ = divide_up(divide_up(geometry_.channels, chunks), block) * block;
    const std::int64_t width = registers_ ? chunk_ : std::min(chunk_, kTileColumns);
    const std::int64_t pixel_bytes = chunk_ * size_of(x_.dtype) * geometry_.kernel_height * geometry_.stride_right;
    std::int64_t most = std::min(table_.is_square() ? kMaxSquarePixels : kMaxGeneralPixels, kCacheBytes / pixel_bytes);
    if (!registers_) most = std::min(most, kTileElements / width);
    const std::int64_t groups = std::max<std::int64_t>(most / kPixelGroup, 1);
    const std::int64_t walks = divide_up(geometry_.out_width, groups * kPixelGroup);
    pixels_ = divide_up(divide_up(geometry_.out_width, walks), kPixelGroup) * kPixelGroup;
  }

  std::int64_t pieces() const override { return rows() * divide_up(geometry_.channels, chunk_); }
  std::int64_t scratch_bytes() const override {
    return epilogue_.scratch_bytes() + table_.entries(pixels_) * static_cast<std::int64_t>(sizeof(void*));
  }
  std::int64_t multiply_accumulates() const override {
    return geometry_.out_pixels() * geometry_.channels * geometry_.kernel_height * geometry_.kernel_width;
  }
  const char* epilogue() const override { return registers_ ? "registers" : epilogue_.path(); }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    const std::int64_t chunks = divide_up(geometry_.channels, chunk_);
    const void** table = reinterpret_cast<const void**>(scratch + epilogue_.scratch_bytes());
    for (std::int64_t piece = part.begin; piece < part.end; ++piece) {
      const std::int64_t row = piece / chunks, channel = piece % chunks * chunk_;
      const std::int64_t end = std::min(channel + chunk_, geometry_.channels);
      for (std::int64_t first = 0; first < geometry_.out_width; first += pixels_) {
        const std::int64_t count = std::min(pixels_, geometry_.out_width - first);
        table_.fill(buffers.read(x_), row, first, count, table);
        DepthwiseTask task{table,
                           static_cast<std::int64_t>(slots_.size()),
                           table_.columns(count),
                           table_.is_square() ? geometry_.stride_right : 0,
                           channel,
                           nullptr,
                           count};
        const std::int64_t pixel = row * geometry_.out_width + first;
        if (registers_) {
          run_registers(task, end, buffers.write(result_) + pixel * result_.pitch * size_of(result_.dtype));
        } else {
          run_sums(buffers, task, end, pixel, scratch);
        }
      }
    }
  }

 private:
  std::int64_t rows() const { return geometry_.batch * geometry_.out_height; }

  std::int64_t run_channels() const { return registers_ ? registers_->run_channels : 0; }

  void run_registers(DepthwiseTask task, std::int64_t end, std::byte* to) const {
    if (result_.dtype == DType::i16) return run_blocks(task, end, reinterpret_cast<std::int16_t*>(to), runs_.words, kernels_.words16);
    const auto bytes = x_.dtype == DType::i16 ? kernels_.bytes16 : kernels_.bytes8;
    run_blocks(task, end, reinterpret_cast<std::uint8_t*>(to), runs_.bytes, bytes);
  }

  // Whole runs of blocks as long as there are any, then block by block.
  template <typename To, typename Run, typename Block>
  void run_blocks(DepthwiseTask task, std::int64_t end, To* to, Run run, Block one) const {
    while (task.channel < end) {
      const std::int64_t block = task.channel / kernels_.lanes;
      DepthwiseScale scale = registers_->scales.at(block, registers_->low, registers_->high);
      scale.bias = biases_.data() + block * kernels_.lanes;
      To* const at = to + task.channel;
      task.weights = weights_.weights(block);
      if (task.channel < run_channels()) {
        run(task, scale, at, result_.pitch);
        task.channel += runs_.blocks * kernels_.lanes;
      } else {
        one(task, scale, std::min(kernels_.lanes, end - task.channel), at, result_.pitch);
        task.channel += kernels_.lanes;
      }
    }
  }

  void run_sums(const Buffers& buffers, DepthwiseTask task, std::int64_t end, std::int64_t pixel,
                std::byte* scratch) const {
    const auto body = x_.dtype == DType::i16 ? kernels_.sums16 : kernels_.sums8;
    while (task.channel < end) {
      const Tile tile{task.count, std::min(kTileColumns, end - task.channel), task.channel};
      for (; task.channel < tile.channel + tile.width; task.channel += kernels_.lanes) {
        const std::int64_t block = task.channel / kernels_.lanes, column = task.channel - tile.channel;
        task.weights = weights_.weights(block);
        body(task, biases_.data() + block * kernels_.lanes, std::min(kernels_.lanes, tile.width - column),
             Epilogue::sums(scratch) + column, tile.width);
      }
      epilogue_.run(buffers, pixel, tile, scratch);
    }
  }

  ConvGeometry geometry_;
  const DepthwiseKernels& kernels_;
  const DepthwiseRuns& runs_;
  Epilogue epilogue_;
  std::optional<RegisterEpilogue> registers_;
  Operand x_, result_;
  std::vector<std::int64_t> slots_;
  PixelTable table_;
  const DepthwiseWeights& weights_;
  std::vector<std::int32_t> biases_;  // of each lane
  std::int64_t chunk_ = 1;   // channels in a piece, whole blocks
  std::int64_t pixels_ = 1;  // output pixels in one walk, whole groups
};

}  // namespace

Made make_depthwise(const StepCall& call, const ConvGeometry& geometry) {
  CVM_REQUIRE(geometry.group_channels() == 1, "not one channel for each group");
  if (geometry.group_outputs() != 1) return make_depthwise_multiplied(call, geometry);
  Expected<Epilogue> epilogue = Epilogue::make(call);
  if (!epilogue) return epilogue.problem();
  return Made(std::make_unique<Depthwise>(call, geometry, std::move(*epilogue)));
}

}  // namespace cvm
