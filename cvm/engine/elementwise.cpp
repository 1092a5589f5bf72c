// The step that is nothing but stages: loads broadcast operands tile by tile and runs the chain over them.
#include <algorithm>
#include <array>

#include "chain.h"
#include "step.h"

namespace cvm {
namespace {

constexpr std::size_t kAxes = kMaxRank;

constexpr std::int64_t kSharingRows = 32;  // in a tile, at least, if factors differ by channel
constexpr std::int64_t kVector = 16;      // of the widest instruction set: rows of a tile end with whole ones

using Strides = std::array<std::int64_t, kAxes>;

// An operand's strides over the result's axes: 0 where it is repeated. Ranks are equal.
Strides strides_of(const Operand& operand) {
  Strides strides{};
  std::int64_t step = 1;
  for (int axis = operand.shape.rank - 1; axis >= 0; --axis) {
    const auto place = static_cast<std::size_t>(axis);
    strides[place] = operand.shape[axis] == 1 ? 0 : step;
    step = axis == operand.shape.rank - 1 ? operand.pitch : step * operand.shape[axis];
  }
  return strides;
}

class ElementWise final : public Kernel {
 public:
  ElementWise(const StepSpec& step, Chain chain)
      : chain_(std::move(chain)), operands_(step.operands), result_(step.result) {
    dims_.fill(1);
    const int rank = std::max(result_.shape.rank, 1);
    rank_ = rank;
    for (int axis = 0; axis < result_.shape.rank; ++axis) dims_[static_cast<std::size_t>(axis)] = result_.shape[axis];
    for (const Operand& operand : operands_) strides_.push_back(strides_of(operand));
    strides_.push_back(strides_of(result_));
    per_channel_ = std::any_of(chain_.stages().begin(), chain_.stages().end(), [](const Stage& stage) {
      return stage.data.multiplier.size() > 1 || stage.data.zero_points.size() > 1;
    });
    merge_axes();
    cut_tiles();
  }

  std::int64_t pieces() const override { return outer_ * row_tiles_ * column_tiles_; }
  std::int64_t scratch_bytes() const override { return chain_.scratch_bytes(); }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    std::array<TileOperand, kMaxLoads> tiles;
    for (std::int64_t piece = part.begin; piece < part.end; ++piece) {
      const std::int64_t column = piece % column_tiles_ * width_;
      const std::int64_t row = piece / column_tiles_ % row_tiles_ * height_;
      const std::int64_t outer = piece / column_tiles_ / row_tiles_;
      const Tile tile{std::min(height_, rows() - row), std::min(width_, columns() - column), column};
      for (std::size_t i = 0; i < operands_.size(); ++i) {
        const Strides& strides = strides_[i];
        const std::int64_t start = offset(strides, outer) + row * row_stride(strides) + column * column_stride(strides);
        tiles[i] = {buffers.read(operands_[i]) + start * size_of(operands_[i].dtype), row_stride(strides),
                    column_stride(strides)};
      }
      const Strides& strides = strides_.back();
      const std::int64_t start = offset(strides, outer) + row * row_stride(strides) + column;
      chain_.run(tile, tiles, buffers.write(result_) + start * size_of(result_.dtype), row_stride(strides), scratch);
    }
  }

 private:
  std::int64_t columns() const { return dims_[last()]; }
  std::int64_t rows() const { return rank_ > 1 ? dims_[last() - 1] : 1; }
  std::size_t last() const { return static_cast<std::size_t>(rank_ - 1); }
  std::int64_t row_stride(const Strides& strides) const { return rank_ > 1 ? strides[last() - 1] : 0; }
  std::int64_t column_stride(const Strides& strides) const { return strides[last()]; }

  // Elements from the start of an operand to where the outer axes (all but the last two) stand at index `outer`.
  std::int64_t offset(const Strides& strides, std::int64_t outer) const {
    std::int64_t total = 0;
    for (int axis = rank_ - 3; axis >= 0; --axis) {
      const auto place = static_cast<std::size_t>(axis);
      total += outer % dims_[place] * strides[place];
      outer /= dims_[place];
    }
    return total;
  }

  // Neighbouring axes over which every operand moves evenly become one, so that rows are long. The last axis stays by
  // itself while some stage counts channels on it.
  void merge_axes() {
    for (int axis = rank_ - 2; axis >= 0; --axis) {
      if (per_channel_ && axis == rank_ - 2) continue;
      const auto place = static_cast<std::size_t>(axis), next = place + 1;
      const bool single = dims_[next] == 1;  // then what lies before it decides the strides
      const bool even = std::all_of(strides_.begin(), strides_.end(), [&](const Strides& strides) {
        if (single) return next != last() || strides[place] <= 1;
        return dims_[place] == 1 || strides[place] == strides[next] * dims_[next];
      });
      if (!even) continue;
      dims_[place] *= dims_[next];
      for (Strides& strides : strides_) {
        if (!single) strides[place] = strides[next];
        std::copy(strides.begin() + axis + 2, strides.end(), strides.begin() + axis + 1);
      }
      std::copy(dims_.begin() + axis + 2, dims_.end(), dims_.begin() + axis + 1);
      --rank_;
    }
  }

  // Factors of channels are made for each tile, so several rows share them.
  void cut_tiles() {
    const std::int64_t widest = per_channel_ ? kLongTileElements / kSharingRows : kLongTileElements;
    column_tiles_ = (columns() + widest - 1) / widest;
    width_ = std::min(columns(), ((columns() + column_tiles_ - 1) / column_tiles_ + kVector - 1) / kVector * kVector);
    height_ = std::min(rows(), kLongTileElements / width_);
    column_tiles_ = (columns() + width_ - 1) / width_;
    row_tiles_ = (rows() + height_ - 1) / height_;
    outer_ = 1;
    for (int axis = rank_ - 3; axis >= 0; --axis) outer_ *= dims_[static_cast<std::size_t>(axis)];
  }

  Chain chain_;
  std::vector<Operand> operands_;
  Operand result_;
  std::vector<Strides> strides_;  // of each operand, then of the result
  Strides dims_{};
  int rank_ = 1;
  bool per_channel_ = false;
  std::int64_t width_ = 1, height_ = 1, column_tiles_ = 1, row_tiles_ = 1, outer_ = 1;
};

}  // namespace

Made make_step_chain(const StepCall& call) {
  CVM_REQUIRE(call.spec.parameters.empty() && !call.spec.stages.empty(), "takes no parameters, and at least one stage");
  for (const Operand& operand : call.spec.operands) {
    CVM_REQUIRE(operand.shape.rank == call.result().shape.rank, "an operand's rank is not the result's");
    for (int axis = 0; axis < operand.shape.rank; ++axis) {
      CVM_REQUIRE(operand.shape[axis] == 1 || operand.shape[axis] == call.result().shape[axis],
                  "an operand does not broadcast to the result");
    }
  }
  Expected<Chain> chain = Chain::make(call.spec, call.constants, call.kernels, false);
  if (!chain) return chain.problem();
  return Made(std::make_unique<ElementWise>(call.spec, std::move(*chain)));
}

}  // namespace cvm
