// Along one axis: reduce_sum, reduce_max, reduce_min, argmax, argsort. Seen from the axis, x is outer x length x inner.
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "arithmetic.h"
#include "step.h"

namespace cvm {
namespace {

constexpr std::int64_t kBlock = 1024;  // neighbours that are reduced side by side
constexpr std::int64_t kFewBlocks = 16;
constexpr std::int64_t kNarrow = 128;

struct Axis {
  std::int64_t outer = 1, length = 1, inner = 1;
};

// Stored i8 integers are bytes in the same order.
bool is_ordered(const Operand& x) {
  return (x.dtype == DType::i8 && x.biased()) || x.dtype == DType::i16 || x.dtype == DType::i32;
}

Expected<Axis> make_axis(const StepCall& call) {
  CVM_REQUIRE(call.takes(1, 0), "takes one operand");
  const Shape& shape = call.operand(0).shape;
  CVM_REQUIRE(call.operand(0).dense() && call.result().dense(), "x and the result are dense");
  const auto* axis = call.ints("axis", 1);
  CVM_REQUIRE(axis && (*axis)[0] >= 0 && (*axis)[0] < shape.rank, "axis is missing or not one of x");
  Axis sizes;
  for (int i = 0; i < shape.rank; ++i) {
    std::int64_t& size = i < (*axis)[0] ? sizes.outer : i == (*axis)[0] ? sizes.length : sizes.inner;
    size *= shape[i];
  }
  CVM_REQUIRE(call.result().shape.elements() == sizes.outer * sizes.inner, "the result has not one element per row");
  return sizes;
}

// Rows of x with their neighbours: pieces are the outer places, cut along the inner ones.
class AlongAxis : public Kernel {
 public:
  AlongAxis(const StepCall& call, const Axis& axis)
      : x_(call.operand(0)), y_(call.result()), axis_(axis), kept_(y_.shape.elements() / (axis.outer * axis.inner)) {
    block_ = std::min(axis.inner, axis.outer < kFewBlocks ? kNarrow : kBlock);
    blocks_ = (axis.inner + block_ - 1) / block_;
  }

  std::int64_t pieces() const override { return axis_.outer * blocks_; }

 protected:
  // Calls body(first element of x, first of the result, number of neighbours) for every piece.
  template <typename T, typename Out, typename Body>
  void each(const Buffers& buffers, Part part, const Body& body) const {
    const T* x = reinterpret_cast<const T*>(buffers.read(x_));
    Out* y = reinterpret_cast<Out*>(buffers.write(y_));
    for (std::int64_t piece = part.begin; piece < part.end; ++piece) {
      const std::int64_t outer = piece / blocks_, inner = piece % blocks_ * block_;
      body(x + outer * axis_.length * axis_.inner + inner, y + outer * kept_ * axis_.inner + inner,
           std::min(block_, axis_.inner - inner));
    }
  }

  const Operand x_, y_;
  const Axis axis_;

 private:
  const std::int64_t kept_;  // elements of the result along the axis
  std::int64_t block_ = 1, blocks_ = 1;
};

// Two at a time, or a whole row of neighbours.
struct Sum {
  static std::int32_t row(const ElementKernels& kernels, std::int64_t count, const std::int32_t* x) { return kernels.sum(count, x); }
  std::int32_t operator()(std::int32_t x, std::int32_t y) const { return wrap_add(x, y); }
};

struct Greatest {
  static std::int32_t row(const ElementKernels& kernels, std::int64_t count, const std::int32_t* x) {
    return kernels.greatest(count, x);
  }
  template <typename T>
  T operator()(T x, T y) const {
    return x > y ? x : y;
  }
};

struct Least {
  static std::int32_t row(const ElementKernels& kernels, std::int64_t count, const std::int32_t* x) {
    return kernels.least(count, x);
  }
  template <typename T>
  T operator()(T x, T y) const {
    return x < y ? x : y;
  }
};

template <typename Combine, typename T>
class Reduction final : public AlongAxis {
 public:
  Reduction(const StepCall& call, const Axis& axis) : AlongAxis(call, axis), kernels_(*call.kernels.elements) {}

  void run(const Buffers& buffers, Part part, std::byte*) const override {
    if (axis_.inner == 1) {  // rows may be short: to find each one's place would take longer
      const T* x = reinterpret_cast<const T*>(buffers.read(x_)) + part.begin * axis_.length;
      T* y = reinterpret_cast<T*>(buffers.write(y_));
      for (std::int64_t piece = part.begin; piece < part.end; ++piece, x += axis_.length) y[piece] = row(x);
      return;
    }
    each<T, T>(buffers, part, [this](const T* x, T* y, std::int64_t count) {
      std::copy_n(x, count, y);
      for (std::int64_t place = 1; place < axis_.length; ++place) {
        x += axis_.inner;
        for (std::int64_t i = 0; i < count; ++i) y[i] = Combine{}(y[i], x[i]);
      }
    });
  }

 private:
  T row(const T* x) const {
    if constexpr (std::is_same_v<T, std::int32_t>) {
      return Combine::row(kernels_, axis_.length, x);
    } else {
      return std::reduce(x + 1, x + axis_.length, *x, Combine{});
    }
  }

  const ElementKernels& kernels_;
};

template <typename T>
class ArgMax final : public AlongAxis {
 public:
  using AlongAxis::AlongAxis;

  std::int64_t scratch_bytes() const override { return kBlock * static_cast<std::int64_t>(sizeof(T)); }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    T* best = reinterpret_cast<T*>(scratch);
    each<T, std::int32_t>(buffers, part, [this, best](const T* x, std::int32_t* y, std::int64_t count) {
      if (axis_.inner == 1) {
        *y = static_cast<std::int32_t>(std::max_element(x, x + axis_.length) - x);
        return;
      }
      std::copy_n(x, count, best);
      std::fill_n(y, count, 0);
      for (std::int64_t place = 1; place < axis_.length; ++place) {
        x += axis_.inner;
        for (std::int64_t i = 0; i < count; ++i) {
          y[i] = x[i] > best[i] ? static_cast<std::int32_t>(place) : y[i];
          best[i] = std::max(best[i], x[i]);
        }
      }
    });
  }
};

template <typename T>
class ArgSort final : public AlongAxis {
 public:
  ArgSort(const StepCall& call, const Axis& rows, bool descending) : AlongAxis(call, rows), descending_(descending) {}

  // Equals are put in the order of their indices, so no two compare equal and the sort need not be stable.
  void run(const Buffers& buffers, Part part, std::byte*) const override {
    each<T, std::int32_t>(buffers, part, [this](const T* x, std::int32_t* y, std::int64_t) {
      std::iota(y, y + axis_.length, 0);
      std::sort(y, y + axis_.length, [this, x](std::int32_t a, std::int32_t b) {
        if (x[a] == x[b]) return a < b;
        return (x[a] < x[b]) != descending_;
      });
    });
  }

 private:
  const bool descending_;
};

template <template <typename> class Body, typename... Arguments>
Made make_ordered(const StepCall& call, const Arguments&... arguments) {
  switch (call.operand(0).dtype) {
    case DType::i8:
      return Made(std::make_unique<Body<std::uint8_t>>(call, arguments...));
    case DType::i16:
      return Made(std::make_unique<Body<std::int16_t>>(call, arguments...));
    default:
      return Made(std::make_unique<Body<std::int32_t>>(call, arguments...));
  }
}

template <typename T>
using MaxReduction = Reduction<Greatest, T>;
template <typename T>
using MinReduction = Reduction<Least, T>;

template <template <typename> class Body>
Made make_extreme(const StepCall& call) {
  Expected<Axis> axis = make_axis(call);
  if (!axis) return axis.problem();
  const Operand &x = call.operand(0), &y = call.result();
  CVM_REQUIRE(is_ordered(x) && x.dtype == y.dtype && x.biased() == y.biased(), "x or the result has a wrong dtype");
  return make_ordered<Body>(call, *axis);
}

}  // namespace

Made make_step_reduce_sum(const StepCall& call) {
  Expected<Axis> axis = make_axis(call);
  if (!axis) return axis.problem();
  CVM_REQUIRE(call.operand(0).dtype == DType::i32 && call.result().dtype == DType::i32, "x or the result is not i32");
  return Made(std::make_unique<Reduction<Sum, std::int32_t>>(call, *axis));
}

Made make_step_reduce_max(const StepCall& call) { return make_extreme<MaxReduction>(call); }

Made make_step_reduce_min(const StepCall& call) { return make_extreme<MinReduction>(call); }

Made make_step_argmax(const StepCall& call) {
  Expected<Axis> axis = make_axis(call);
  if (!axis) return axis.problem();
  CVM_REQUIRE(is_ordered(call.operand(0)) && call.result().dtype == DType::i32, "x or the result has a wrong dtype");
  return make_ordered<ArgMax>(call, *axis);
}

Made make_step_argsort(const StepCall& call) {
  CVM_REQUIRE(call.takes(1, 0), "takes one operand");
  const Operand &x = call.operand(0), &y = call.result();
  CVM_REQUIRE(
      is_ordered(x) && x.shape.rank >= 1 && x.shape == y.shape && y.dtype == DType::i32 && x.dense() && y.dense(),
      "x has a wrong dtype or rank, or the result is not i32 of x's shape");
  const auto* descending = call.ints("descending", 1);
  CVM_REQUIRE(descending, "descending is missing");
  const Axis rows{x.rows(), x.shape.last(), 1};
  return make_ordered<ArgSort>(call, rows, (*descending)[0] != 0);
}

}  // namespace cvm
