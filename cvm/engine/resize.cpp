// resize: an image at other places, each the nearest of its neighbours or a weighted sum of them.
#include <algorithm>
#include <array>

#include "move_row.h"
#include "step.h"

namespace cvm {
namespace {

constexpr std::int64_t kPieceBytes = 32768;
constexpr std::int64_t kMaxSide = 16383;
constexpr std::int64_t kMaxScale = 2048;

// The two neighbours of one place of the result along an axis, and how much each of them weighs. Nearest has one.
struct Neighbours {
  std::int64_t before = 0, after = 0;
  std::uint32_t before_weight = 0, after_weight = 0;
};

// One axis of the attributes, checked: everything that is computed from it stays far below 2^63.
struct Sampling {
  std::int64_t n, d, offset, border;

  Problem check(std::int64_t size, std::int64_t result_size) const {
    CVM_REQUIRE(size <= kMaxSide && result_size <= kMaxSide, "a side is longer than 16383");
    CVM_REQUIRE(n >= 1 && n <= kMaxScale && d >= 1 && d < 16 * n, "scale is not 1 <= n <= 2048, 1 <= d < 16 n");
    CVM_REQUIRE(offset >= -n && offset < 16 * n, "offset is not -n <= offset < 16 n");
    CVM_REQUIRE(border >= -16 * n && border < n, "border is not -16 n <= border < n");
    CVM_REQUIRE((size - 1) * n - offset + border == (result_size - 1) * d,
                "scale, offset and border do not give the result's size");
    return {};
  }

  std::vector<Neighbours> neighbours(std::int64_t size, std::int64_t result_size, bool nearest) const {
    std::vector<Neighbours> places;
    for (std::int64_t i = 0; i < result_size; ++i) {
      const std::int64_t from_minus_one = i * d + offset + n;  // not negative, since offset >= -n
      const std::int64_t place = from_minus_one / n - 1, rest = from_minus_one % n;
      const std::int64_t before = std::clamp(place, std::int64_t{0}, size - 1);
      const std::int64_t after = std::clamp(place + 1, std::int64_t{0}, size - 1);
      const std::int64_t nearer = 2 * rest >= n ? after : before;
      places.push_back(
          {nearest ? nearer : before, after, static_cast<std::uint32_t>(n - rest), static_cast<std::uint32_t>(rest)});
    }
    return places;
  }
};

// Rows of the result, one after the other over all samples.
class Resize : public Kernel {
 public:
  Resize(const Operand& x, const Operand& result, const std::array<Sampling, 2>& axes, bool nearest)
      : x_(x),
        result_(result),
        rows_(axes[0].neighbours(x.shape[1], result.shape[1], nearest)),
        columns_(axes[1].neighbours(x.shape[2], result.shape[2], nearest)),
        rows_a_piece_(std::max(std::int64_t{1}, kPieceBytes / row_bytes(result))) {}

  std::int64_t pieces() const final { return (rows() + rows_a_piece_ - 1) / rows_a_piece_; }

  void run(const Buffers& buffers, Part part, std::byte*) const final {
    const std::int64_t end = std::min(part.end * rows_a_piece_, rows());
    for (std::int64_t row = part.begin * rows_a_piece_; row < end; ++row) {
      const Neighbours& neighbours = rows_[static_cast<std::size_t>(row % result_.shape[1])];
      const std::byte* sample = buffers.read(x_) + row / result_.shape[1] * x_.shape[1] * row_bytes(x_);
      run_row(sample + neighbours.before * row_bytes(x_), sample + neighbours.after * row_bytes(x_), neighbours,
              buffers.write(result_) + row * row_bytes(result_));
    }
  }

 protected:
  virtual void run_row(const std::byte* before, const std::byte* after, const Neighbours& row,
                       std::byte* result) const = 0;

  static std::int64_t pixel_bytes(const Operand& operand) { return operand.pitch * size_of(operand.dtype); }
  static std::int64_t row_bytes(const Operand& operand) { return operand.shape[2] * pixel_bytes(operand); }
  std::int64_t channels() const { return result_.shape[3]; }

  Operand x_, result_;
  std::vector<Neighbours> rows_, columns_;

 private:
  std::int64_t rows() const { return result_.shape[0] * result_.shape[1]; }

  std::int64_t rows_a_piece_;
};

class Nearest final : public Resize {
 public:
  using Resize::Resize;

 private:
  void run_row(const std::byte* before, const std::byte*, const Neighbours&, std::byte* result) const override {
    const std::int64_t bytes = channels() * size_of(result_.dtype);
    const std::uint64_t flip = flip_between(x_, result_);
    for (const Neighbours& column : columns_) {
      move_row(before + column.before * pixel_bytes(x_), result, bytes, flip);
      result += pixel_bytes(result_);
    }
  }
};

// `T` is how an element lies in memory, `Bias` what it has to lose to be plain. The sum is that of SPEC.md modulo 2^32:
// the same integer, since a proven result fits 32 bits.
template <typename T, std::uint32_t Bias>
class Bilinear final : public Resize {
 public:
  using Resize::Resize;

 private:
  void run_row(const std::byte* before, const std::byte* after, const Neighbours& row,
               std::byte* result) const override {
    for (const Neighbours& column : columns_) {
      const std::int64_t left = column.before * pixel_bytes(x_), right = column.after * pixel_bytes(x_);
      const T* corners[4] = {at(before, left), at(before, right), at(after, left), at(after, right)};
      const std::uint32_t weights[4] = {
          row.before_weight * column.before_weight, row.before_weight * column.after_weight,
          row.after_weight * column.before_weight, row.after_weight * column.after_weight};
      run_pixel(corners, weights, reinterpret_cast<std::int32_t*>(result));
      result += pixel_bytes(result_);
    }
  }

  static const T* at(const std::byte* row, std::int64_t bytes) { return reinterpret_cast<const T*>(row + bytes); }

  void run_pixel(const T* const (&corners)[4], const std::uint32_t (&weights)[4], std::int32_t* result) const {
    const T *a = corners[0], *b = corners[1], *c = corners[2], *d = corners[3];
    const std::uint32_t p = weights[0], q = weights[1], r = weights[2], s = weights[3];
    const std::uint32_t excess = (p + q + r + s) * Bias;
    const std::int64_t count = channels();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t sum = static_cast<std::uint32_t>(a[i]) * p + static_cast<std::uint32_t>(b[i]) * q +
                                static_cast<std::uint32_t>(c[i]) * r + static_cast<std::uint32_t>(d[i]) * s;
      result[i] = static_cast<std::int32_t>(sum - excess);
    }
  }
};

template <typename Kind>
Made made(const StepCall& call, const std::array<Sampling, 2>& axes, bool nearest) {
  return Made(std::make_unique<Kind>(call.operand(0), call.result(), axes, nearest));
}

Made make_bilinear(const StepCall& call, const std::array<Sampling, 2>& axes) {
  const Operand& x = call.operand(0);
  CVM_REQUIRE(call.result().dtype == DType::i32, "the result of bilinear is not i32");
  if (x.dtype == DType::i16) return made<Bilinear<std::int16_t, 0>>(call, axes, false);
  CVM_REQUIRE(x.dtype == DType::i8, "bilinear takes i8 or i16");
  return x.biased() ? made<Bilinear<std::uint8_t, 128>>(call, axes, false)
                    : made<Bilinear<std::int8_t, 0>>(call, axes, false);
}

}  // namespace

Made make_step_resize(const StepCall& call) {
  CVM_REQUIRE(call.takes(1, 0), "takes one operand");
  const Shape& x = call.operand(0).shape;
  const Shape& result = call.result().shape;
  CVM_REQUIRE(x.rank == 4 && result.rank == 4, "the operand or the result is not of rank 4");
  CVM_REQUIRE(x[0] == result[0] && x[3] == result[3], "the result has other samples or channels than the operand");
  const auto* scale = call.ints("scale", 4);
  const auto* offset = call.ints("offset", 2);
  const auto* border = call.ints("border", 2);
  const auto* mode = call.ints("mode", 1);
  CVM_REQUIRE(scale != nullptr && offset != nullptr && border != nullptr && mode != nullptr &&
                  (mode->front() == 0 || mode->front() == 1),
              "scale, offset, border or mode is missing");
  const std::array<Sampling, 2> axes{
      {{(*scale)[0], (*scale)[1], (*offset)[0], (*border)[0]}, {(*scale)[2], (*scale)[3], (*offset)[1], (*border)[1]}}};
  for (int axis = 0; axis < 2; ++axis) {
    const Problem wrong = axes[static_cast<std::size_t>(axis)].check(x[axis + 1], result[axis + 1]);
    CVM_REQUIRE(wrong.empty(), wrong);
  }
  if (mode->front() == 1) return make_bilinear(call, axes);
  CVM_REQUIRE(call.operand(0).dtype == call.result().dtype, "the result of nearest does not have the operand's dtype");
  return made<Nearest>(call, axes, true);
}

}  // namespace cvm
