// max_pool2d and avg_pool2d. Rows of the result, cut into blocks of channels, are the pieces; of each row, the places
// whose windows lie wholly inside x run together, those at the edges one by one.
#include <algorithm>

#include "step.h"

namespace cvm {
namespace {

constexpr std::int64_t kMaxStep = std::int64_t{1} << 20;  // of a kernel or stride
constexpr std::int64_t kTile = 1024;                      // sums held at once
constexpr std::int64_t kFewRows = 16;                     // a result of fewer rows is cut along its channels
constexpr std::int64_t kNarrow = 128;

// One axis of x and of the windows that slide along it.
struct Axis {
  std::int64_t size = 1, kernel = 1, stride = 1, before = 0, count = 1;

  // The places of window i that lie inside x: at least one, since pads are less than the kernel.
  std::int64_t begin(std::int64_t i) const { return std::max(i * stride - before, std::int64_t{0}); }
  std::int64_t end(std::int64_t i) const { return std::min(i * stride - before + kernel, size); }
  // The first window after i whose shape may differ: those wholly inside x all have one shape.
  std::int64_t same_until(std::int64_t i) const {
    const bool inside = i * stride >= before && i * stride - before + kernel <= size;
    return inside ? (size - kernel + before) / stride + 1 : i + 1;
  }
};

struct Geometry {
  Axis down, right;
  Operand x, y;
};

Expected<Axis> make_axis(const StepCall& call, int place) {
  const auto* kernel = call.ints("kernel", 2);
  const auto* stride = call.ints("stride", 2);
  const auto* pad = call.ints("pad", 4);
  CVM_REQUIRE(kernel && stride && pad, "kernel, stride or pad is missing");
  const auto index = static_cast<std::size_t>(place);
  Axis axis{call.operand(0).shape[1 + place], (*kernel)[index], (*stride)[index], (*pad)[2 * index],
            call.result().shape[1 + place]};
  const std::int64_t after = (*pad)[2 * index + 1];
  CVM_REQUIRE(axis.kernel >= 1 && axis.kernel <= kMaxStep && axis.stride >= 1 && axis.stride <= kMaxStep,
              "a kernel or stride is not 1..2^20");
  CVM_REQUIRE(axis.before >= 0 && axis.before < axis.kernel && after >= 0 && after < axis.kernel,
              "a pad is not 0.. below the kernel");
  const std::int64_t room = axis.size + axis.before + after - axis.kernel;
  CVM_REQUIRE(room >= 0 && room % axis.stride == 0 && room / axis.stride + 1 == axis.count,
              "the result's size is not the number of windows");
  return axis;
}

Expected<Geometry> make_geometry(const StepCall& call) {
  CVM_REQUIRE(call.takes(1, 0), "takes one operand");
  const Operand &x = call.operand(0), &y = call.result();
  CVM_REQUIRE(x.shape.rank == 4 && y.shape.rank == 4 && x.dtype == y.dtype && x.shape[0] == y.shape[0] &&
                  x.shape[3] == y.shape[3],
              "x and the result are not of rank 4 and one dtype, samples and channels");
  CVM_REQUIRE(x.dtype != DType::i8 || (x.biased() && y.biased()), "i8 inputs and outputs are copied first");
  Expected<Axis> down = make_axis(call, 0), right = make_axis(call, 1);
  if (!down) return down.problem();
  if (!right) return right.problem();
  return Geometry{*down, *right, x, y};
}

class Pooling : public Kernel {
 public:
  Pooling(const Geometry& geometry, const Kernels& kernels, std::int64_t max_places_by_width)
      : x_(geometry.x), y_(geometry.y), kernels_(kernels), down_(geometry.down), right_(geometry.right) {
    const std::int64_t rows = y_.shape[0] * down_.count;
    block_ = std::min(x_.shape[3], rows < kFewRows ? kNarrow : kTile);
    blocks_ = (x_.shape[3] + block_ - 1) / block_;
    longest_ = std::max(max_places_by_width / block_, std::int64_t{1});
  }

  std::int64_t pieces() const override { return y_.shape[0] * down_.count * blocks_; }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    for (std::int64_t piece = part.begin; piece < part.end; ++piece) {
      const std::int64_t channel = piece % blocks_ * block_, row = piece / blocks_;
      run_row(buffers, row / down_.count, row % down_.count, channel, scratch);
    }
  }

 protected:
  // The places of one run, whose windows have rows * columns elements each.
  virtual void run_places(const PoolRun& places, const std::byte* from, std::byte* to, std::byte* scratch) const = 0;

  const Operand x_, y_;
  const Kernels& kernels_;

 private:
  void run_row(const Buffers& buffers, std::int64_t sample, std::int64_t row, std::int64_t channel,
               std::byte* scratch) const {
    const std::int64_t top = down_.begin(row), size = size_of(x_.dtype);
    const std::int64_t first_row = (sample * down_.size + top) * right_.size;
    const std::byte* from = buffers.read(x_) + (first_row * x_.pitch + channel) * size;
    std::byte* to = buffers.write(y_) + ((sample * down_.count + row) * right_.count * y_.pitch + channel) * size;
    PoolRun places{down_.end(row) - top,
                   1,
                   right_.size * x_.pitch,
                   x_.pitch,
                   1,
                   right_.stride * x_.pitch,
                   y_.pitch,
                   std::min(block_, x_.shape[3] - channel)};
    for (std::int64_t column = 0; column < right_.count; column += places.count) {
      const std::int64_t left = right_.begin(column);
      places.columns = right_.end(column) - left;
      places.count = std::min(right_.same_until(column) - column, longest_);
      run_places(places, from + left * x_.pitch * size, to + column * y_.pitch * size, scratch);
    }
  }

  const Axis down_, right_;
  std::int64_t block_ = 1, blocks_ = 1;  // of channels
  std::int64_t longest_ = 1;             // places in a run
};

class MaxPool final : public Pooling {
 public:
  MaxPool(const Geometry& geometry, const Kernels& kernels) : Pooling(geometry, kernels, kMaxElements) {}

 private:
  void run_places(const PoolRun& places, const std::byte* from, std::byte* to, std::byte*) const override {
    const PoolingKernels& pooling = *kernels_.pooling;
    if (x_.dtype == DType::i8) return call(pooling.max8, places, from, to);
    if (x_.dtype == DType::i16) return call(pooling.max16, places, from, to);
    return call(pooling.max32, places, from, to);
  }

  template <typename T>
  static void call(void (*body)(const PoolRun&, const T*, T*), const PoolRun& places, const std::byte* from,
                   std::byte* to) {
    body(places, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to));
  }
};

// The mean of r integers is a rescale of their sum by TOSA's reciprocal of r.
class AveragePool final : public Pooling {
 public:
  AveragePool(const Geometry& geometry, const Kernels& kernels, std::int32_t input_zero_point,
              std::int32_t output_zero_point)
      : Pooling(geometry, kernels, kTile),
        input_zero_point_(input_zero_point + bias()),
        output_zero_point_(output_zero_point) {}

  std::int64_t scratch_bytes() const override { return kTile * 4; }

 private:
  std::int32_t bias() const { return x_.dtype == DType::i8 ? 128 : 0; }

  void run_places(const PoolRun& places, const std::byte* from, std::byte* to, std::byte* scratch) const override {
    auto* sums = reinterpret_cast<std::int32_t*>(scratch);
    PoolRun sum_run = places;
    sum_run.to_step = places.width;
    if (x_.dtype == DType::i8) {
      kernels_.pooling->sum8(sum_run, reinterpret_cast<const std::uint8_t*>(from), sums);
    } else {
      kernels_.pooling->sum16(sum_run, reinterpret_cast<const std::int16_t*>(from), sums);
    }
    divide(places, sums);
    for (std::int64_t place = 0; place < places.count; ++place, sums += places.width) {
      std::byte* row = to + place * places.to_step * size_of(y_.dtype);
      if (y_.dtype == DType::i8) {
        kernels_.elements->store8(128, places.width, sums, reinterpret_cast<std::uint8_t*>(row));
      } else {
        kernels_.elements->store16(places.width, sums, reinterpret_cast<std::int16_t*>(row));
      }
    }
  }

  // 2^30 < multiplier < 2^31 for at most 2^23 integers. The zero point of a sum is that of all its integers.
  void divide(const PoolRun& places, std::int32_t* sums) const {
    const std::int64_t integers = places.rows * places.columns;
    std::int32_t bits = 0;
    while (std::int64_t{1} << bits < integers) ++bits;
    const auto multiplier = static_cast<std::int32_t>((((std::int64_t{1} << 30) + 1) << bits) / integers);
    const std::int32_t shift = 30 + bits;
    const Rescale mean{&multiplier,
                       &shift,
                       1,
                       static_cast<std::int32_t>(integers * input_zero_point_),
                       output_zero_point_,
                       static_cast<std::int32_t>(lowest(y_.dtype)),
                       static_cast<std::int32_t>(highest(y_.dtype)),
                       false};
    kernels_.elements->rescale(mean, {places.count, places.width, 0}, sums, sums);
  }

  const std::int32_t input_zero_point_, output_zero_point_;
};

bool is_zero_point(std::int64_t value, DType dtype) {
  return dtype == DType::i8 ? lowest(dtype) <= value && value <= highest(dtype) : value == 0;
}

}  // namespace

Made make_step_max_pool2d(const StepCall& call) {
  Expected<Geometry> geometry = make_geometry(call);
  if (!geometry) return geometry.problem();
  const DType dtype = geometry->x.dtype;
  CVM_REQUIRE(dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32, "x is not i8, i16 or i32");
  return Made(std::make_unique<MaxPool>(*geometry, call.kernels));
}

Made make_step_avg_pool2d(const StepCall& call) {
  Expected<Geometry> geometry = make_geometry(call);
  if (!geometry) return geometry.problem();
  const DType dtype = geometry->x.dtype;
  CVM_REQUIRE(dtype == DType::i8 || dtype == DType::i16, "x is not i8 or i16");
  const std::int64_t most = std::int64_t{1} << (dtype == DType::i8 ? 23 : 16);
  CVM_REQUIRE(geometry->down.kernel * geometry->right.kernel <= most, "a window is so large that its sum may not fit");
  const auto* input_zp = call.ints("input_zp", 1);
  const auto* output_zp = call.ints("output_zp", 1);
  CVM_REQUIRE(input_zp && output_zp && is_zero_point((*input_zp)[0], dtype) && is_zero_point((*output_zp)[0], dtype),
              "a zero point is missing or does not fit x");
  return Made(std::make_unique<AveragePool>(*geometry, call.kernels, static_cast<std::int32_t>((*input_zp)[0]),
                                            static_cast<std::int32_t>((*output_zp)[0])));
}

}  // namespace cvm
