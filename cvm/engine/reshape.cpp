// reshape, and with it every copy that a plan makes.
#include <algorithm>

#include "move_row.h"
#include "step.h"

namespace cvm {
namespace {

constexpr std::int64_t kPieceBytes = 32768;

// Rows of one length become rows of another: neighbours stay neighbours.
class Reshape final : public Kernel {
 public:
  Reshape(const Operand& x, const Operand& result)
      : x_(x), result_(result), x_row_(row_of(x)), result_row_(row_of(result)), flip_(flip_between(x, result)) {}

  std::int64_t pieces() const override { return (x_.shape.elements() + piece() - 1) / piece(); }

  void run(const Buffers& buffers, Part part, std::byte*) const override {
    const std::int64_t size = size_of(x_.dtype);
    const std::int64_t end = std::min(part.end * piece(), x_.shape.elements());
    for (std::int64_t place = part.begin * piece(); place < end;) {
      const std::int64_t x_column = place % x_row_, column = place % result_row_;
      const std::int64_t count = std::min({x_row_ - x_column, result_row_ - column, end - place});
      const std::int64_t from = place / x_row_ * x_.pitch + x_column;
      const std::int64_t to = place / result_row_ * result_.pitch + column;
      move_row(buffers.read(x_) + from * size, buffers.write(result_) + to * size, count * size, flip_);
      place += count;
    }
  }

 private:
  // A dense operand is one long row.
  static std::int64_t row_of(const Operand& operand) {
    return operand.dense() ? operand.shape.elements() : operand.shape.last();
  }
  std::int64_t piece() const { return kPieceBytes / size_of(x_.dtype); }

  Operand x_, result_;
  std::int64_t x_row_, result_row_;
  std::uint64_t flip_;
};

}  // namespace

Made make_step_reshape(const StepCall& call) {
  CVM_REQUIRE(call.takes(1, 0) && call.operand(0).dtype == call.result().dtype,
              "takes one operand of the result's dtype");
  const Shape& shape = call.result().shape;
  const auto* named = call.ints("shape", shape.rank);
  CVM_REQUIRE(named != nullptr && std::equal(named->begin(), named->end(), shape.dims.begin()),
              "shape is not that of the result");
  CVM_REQUIRE(call.operand(0).shape.elements() == shape.elements(), "the operand has another number of elements");
  return Made(std::make_unique<Reshape>(call.operand(0), call.result()));
}

}  // namespace cvm
