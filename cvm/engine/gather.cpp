// gather: rows of a table, picked by indices.
#include <algorithm>

#include "move_row.h"
#include "step.h"

namespace cvm {
namespace {

constexpr std::int64_t kPieceBytes = 32768;

class Gather final : public Kernel {
 public:
  Gather(const Operand& values, const Operand& indices, const Operand& result)
      : values_(values),
        indices_(indices),
        result_(result),
        row_bytes_(result.shape.last() * size_of(result.dtype)),
        rows_a_piece_(std::max(std::int64_t{1}, kPieceBytes / row_bytes_)),
        flip_(flip_between(values, result)) {}

  std::int64_t pieces() const override { return (result_.rows() + rows_a_piece_ - 1) / rows_a_piece_; }

  void run(const Buffers& buffers, Part part, std::byte*) const override {
    const std::byte* values = buffers.read(values_);
    const auto* indices = reinterpret_cast<const std::int32_t*>(buffers.read(indices_));
    std::byte* result = buffers.write(result_);
    const std::int64_t count = values_.shape[1], picks = indices_.shape[1], size = size_of(result_.dtype);
    const std::int64_t end = std::min(part.end * rows_a_piece_, result_.rows());
    for (std::int64_t row = part.begin * rows_a_piece_; row < end; ++row) {
      const std::int64_t sample = row / picks;
      const std::int64_t index = indices[sample * indices_.pitch + row % picks];
      const std::int64_t source = sample * count + std::clamp(index, std::int64_t{0}, count - 1);
      move_row(values + source * values_.pitch * size, result + row * result_.pitch * size, row_bytes_, flip_);
    }
  }

 private:
  Operand values_, indices_, result_;
  std::int64_t row_bytes_, rows_a_piece_;
  std::uint64_t flip_;
};

}  // namespace

Made make_step_gather(const StepCall& call) {
  CVM_REQUIRE(call.takes(2, 0), "takes values and indices");
  const Operand& values = call.operand(0);
  const Operand& indices = call.operand(1);
  const Shape& shape = call.result().shape;
  CVM_REQUIRE(values.dtype == call.result().dtype && indices.dtype == DType::i32,
              "values does not have the result's dtype, or indices is not i32");
  CVM_REQUIRE(values.shape.rank == 3 && indices.shape.rank == 2 && shape.rank == 3,
              "values, indices and result are not of rank 3, 2 and 3");
  CVM_REQUIRE(indices.shape[0] == values.shape[0] && shape[0] == values.shape[0] && shape[1] == indices.shape[1] &&
                  shape[2] == values.shape[2],
              "the shapes of values, indices and result do not agree");
  return Made(std::make_unique<Gather>(values, indices, call.result()));
}

}  // namespace cvm
