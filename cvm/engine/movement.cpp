// transpose, concat, slice, pad, tile, reverse: elements go elsewhere, unchanged.
#include <algorithm>
#include <array>

#include "move_row.h"
#include "strided.h"

namespace cvm {
namespace {

constexpr int kFill = -1;  // in place of an operand: the value that pad writes

using Strides = std::array<std::int64_t, kMaxRank>;
using Integers = std::vector<std::int64_t>;

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

Strides strides_of(const Operand& operand) {
  Strides strides{};
  std::int64_t step = 1;
  for (int axis = operand.shape.rank - 1; axis >= 0; --axis) {
    strides[at(axis)] = step;
    step = axis == operand.shape.rank - 1 ? operand.pitch : step * operand.shape[axis];
  }
  return strides;
}

struct Move {
  int operand = 0;
  StridedCopy copy;
  std::int64_t first_piece = 0;
};

// Copies into disjoint parts of one result.
class Movement final : public Kernel {
 public:
  explicit Movement(const StepCall& call)
      : operands_(call.spec.operands), result_(call.spec.result), three_planes_(call.kernels.three_planes) {}

  void add(int operand, const std::vector<CopyAxis>& axes, std::int64_t from_start, std::int64_t to_start) {
    const std::uint64_t flip = operand == kFill ? 0 : flip_between(operands_[at(operand)], result_);
    moves_.push_back({operand, StridedCopy(axes, from_start, to_start, size_of(result_.dtype), flip, three_planes_), pieces_});
    pieces_ += moves_.back().copy.pieces();
  }

  // The value that copies from kFill write.
  void set_fill(std::int64_t value) {
    const auto stored = static_cast<std::uint32_t>(value + (result_.biased() ? 128 : 0));
    const auto byte = static_cast<std::uint8_t>(stored);
    const auto half = static_cast<std::uint16_t>(stored);
    switch (size_of(result_.dtype)) {
      case 1:
        std::memcpy(fill_, &byte, sizeof byte);
        break;
      case 2:
        std::memcpy(fill_, &half, sizeof half);
        break;
      default:
        std::memcpy(fill_, &stored, sizeof stored);
    }
  }

  std::int64_t pieces() const override { return pieces_; }

  void run(const Buffers& buffers, Part part, std::byte*) const override {
    auto move = std::upper_bound(moves_.begin(), moves_.end(), part.begin,
                                 [](std::int64_t piece, const Move& other) { return piece < other.first_piece; }) -
                1;
    for (; move != moves_.end() && move->first_piece < part.end; ++move) {
      const std::byte* from = move->operand == kFill ? fill_ : buffers.read(operands_[at(move->operand)]);
      const Part share{std::max(part.begin - move->first_piece, std::int64_t{0}),
                       std::min(part.end - move->first_piece, move->copy.pieces())};
      move->copy.run(from, buffers.write(result_), share);
    }
  }

 private:
  std::vector<Operand> operands_;
  Operand result_;
  ThreePlanes three_planes_;
  std::vector<Move> moves_;
  std::int64_t pieces_ = 0;
  alignas(4) std::byte fill_[4] = {};
};

Problem check_one(const StepCall& call) {
  CVM_REQUIRE(call.takes(1, 0) && call.operand(0).dtype == call.result().dtype,
              "takes one operand of the result's dtype");
  return {};
}

// One operand of the result's rank, and an attribute with `entries` integers for each axis.
Problem check_axes(const StepCall& call, std::string_view name, int entries) {
  const Problem wrong = check_one(call);
  CVM_REQUIRE(wrong.empty(), wrong);
  const int rank = call.result().shape.rank;
  CVM_REQUIRE(call.operand(0).shape.rank == rank, "the operand's rank is not the result's");
  CVM_REQUIRE(call.ints(name, entries * rank) != nullptr, std::string(name) + " does not have an entry for each axis");
  return {};
}

// An attribute that names one of the result's axes.
Problem check_axis(const StepCall& call) {
  CVM_REQUIRE(call.ints("axis", 1) != nullptr, "has no axis");
  const std::int64_t axis = call.ints("axis", 1)->front();
  CVM_REQUIRE(axis >= 0 && axis < call.result().shape.rank, "axis is not one of the result's");
  return {};
}

Made finished(std::unique_ptr<Movement> movement) { return Made(std::move(movement)); }

// The boxes of the result around x: along each axis what lies before and after, over the middle of the axes before it
// and all of the axes behind it.
void add_borders(Movement& movement, const Operand& x, const Operand& result, const Integers& pads) {
  const Strides to = strides_of(result);
  const int rank = result.shape.rank;
  std::int64_t middle = 0;  // start of the middle of the axes before this one
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t before = pads[2 * at(axis)], after = pads[2 * at(axis) + 1];
    std::vector<CopyAxis> box;
    for (int other = 0; other < rank; ++other) {
      box.push_back({other < axis ? x.shape[other] : result.shape[other], 0, to[at(other)]});
    }
    for (const auto& [count, start] : {std::pair{before, std::int64_t{0}}, std::pair{after, before + x.shape[axis]}}) {
      box[at(axis)].count = count;
      if (count > 0) movement.add(kFill, box, 0, middle + start * to[at(axis)]);
    }
    middle += before * to[at(axis)];
  }
}

}  // namespace

Made make_step_transpose(const StepCall& call) {
  const Problem wrong = check_axes(call, "perm", 1);
  CVM_REQUIRE(wrong.empty(), wrong);
  const Operand& x = call.operand(0);
  const Shape& shape = call.result().shape;
  const Integers& perm = *call.ints("perm", shape.rank);
  const Strides from = strides_of(x), to = strides_of(call.result());
  unsigned seen = 0;
  std::vector<CopyAxis> axes;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const std::int64_t source = perm[at(axis)];
    CVM_REQUIRE(source >= 0 && source < shape.rank && (seen >> source & 1) == 0,
                "perm is not a permutation of the axes");
    seen |= 1u << source;
    const int place = static_cast<int>(source);
    CVM_REQUIRE(x.shape[place] == shape[axis], "perm does not turn the operand's shape into the result's");
    axes.push_back({shape[axis], from[at(place)], to[at(axis)]});
  }
  auto movement = std::make_unique<Movement>(call);
  movement->add(0, axes, 0, 0);
  return finished(std::move(movement));
}

Made make_step_concat(const StepCall& call) {
  CVM_REQUIRE(!call.spec.operands.empty() && call.takes(call.spec.operands.size(), 0), "takes one operand or more");
  const Problem wrong = check_axis(call);
  CVM_REQUIRE(wrong.empty(), wrong);
  const int along = static_cast<int>(call.ints("axis", 1)->front());
  const Shape& shape = call.result().shape;
  const Strides to = strides_of(call.result());
  auto movement = std::make_unique<Movement>(call);
  std::int64_t start = 0;
  for (std::size_t number = 0; number < call.spec.operands.size(); ++number) {
    const Operand& x = call.operand(number);
    CVM_REQUIRE(x.dtype == call.result().dtype && x.shape.rank == shape.rank,
                "an operand's dtype or rank is not the result's");
    const Strides from = strides_of(x);
    std::vector<CopyAxis> axes;
    for (int axis = 0; axis < shape.rank; ++axis) {
      CVM_REQUIRE(axis == along ? x.shape[axis] <= shape[axis] - start : x.shape[axis] == shape[axis],
                  "an operand's shape does not fit the result");
      axes.push_back({x.shape[axis], from[at(axis)], to[at(axis)]});
    }
    movement->add(static_cast<int>(number), axes, 0, start * to[at(along)]);
    start += x.shape[along];
  }
  CVM_REQUIRE(start == shape[along], "the operands do not fill the result");
  return finished(std::move(movement));
}

Made make_step_slice(const StepCall& call) {
  for (const char* name : {"start", "size"}) {
    const Problem wrong = check_axes(call, name, 1);
    CVM_REQUIRE(wrong.empty(), wrong);
  }
  const Operand& x = call.operand(0);
  const Shape& shape = call.result().shape;
  const Integers& start = *call.ints("start", shape.rank);
  const Integers& size = *call.ints("size", shape.rank);
  const Strides from = strides_of(x), to = strides_of(call.result());
  std::vector<CopyAxis> axes;
  std::int64_t first = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    CVM_REQUIRE(size[at(axis)] == shape[axis], "size is not the result's shape");
    CVM_REQUIRE(start[at(axis)] >= 0 && start[at(axis)] <= x.shape[axis] - shape[axis],
                "the box is not inside the operand");
    axes.push_back({shape[axis], from[at(axis)], to[at(axis)]});
    first += start[at(axis)] * from[at(axis)];
  }
  auto movement = std::make_unique<Movement>(call);
  movement->add(0, axes, first, 0);
  return finished(std::move(movement));
}

Made make_step_pad(const StepCall& call) {
  const Problem wrong = check_axes(call, "pads", 2);
  CVM_REQUIRE(wrong.empty(), wrong);
  const Operand& x = call.operand(0);
  const Operand& result = call.result();
  const Integers& pads = *call.ints("pads", 2 * result.shape.rank);
  const Integers* value = call.ints("value", 1);
  CVM_REQUIRE(value != nullptr && value->front() >= lowest(x.dtype) && value->front() <= highest(x.dtype),
              "value does not fit the dtype");
  const Strides from = strides_of(x), to = strides_of(result);
  std::vector<CopyAxis> axes;
  std::int64_t first = 0;
  for (int axis = 0; axis < result.shape.rank; ++axis) {
    const std::int64_t before = pads[2 * at(axis)], after = pads[2 * at(axis) + 1];
    const std::int64_t room = result.shape[axis] - x.shape[axis];
    CVM_REQUIRE(before >= 0 && before <= room && after == room - before,
                "pads do not turn the operand's shape into the result's");
    axes.push_back({x.shape[axis], from[at(axis)], to[at(axis)]});
    first += before * to[at(axis)];
  }
  auto movement = std::make_unique<Movement>(call);
  movement->set_fill(value->front());
  add_borders(*movement, x, result, pads);
  movement->add(0, axes, 0, first);
  return finished(std::move(movement));
}

Made make_step_tile(const StepCall& call) {
  const Problem wrong = check_axes(call, "multiples", 1);
  CVM_REQUIRE(wrong.empty(), wrong);
  const Operand& x = call.operand(0);
  const Shape& shape = call.result().shape;
  const Integers& multiples = *call.ints("multiples", shape.rank);
  const Strides from = strides_of(x), to = strides_of(call.result());
  std::vector<CopyAxis> axes;
  for (int axis = 0; axis < shape.rank; ++axis) {
    CVM_REQUIRE(shape[axis] % x.shape[axis] == 0 && multiples[at(axis)] == shape[axis] / x.shape[axis],
                "multiples do not turn the operand's shape into the result's");
    axes.push_back({multiples[at(axis)], 0, x.shape[axis] * to[at(axis)]});
    axes.push_back({x.shape[axis], from[at(axis)], to[at(axis)]});
  }
  auto movement = std::make_unique<Movement>(call);
  movement->add(0, axes, 0, 0);
  return finished(std::move(movement));
}

Made make_step_reverse(const StepCall& call) {
  Problem wrong = check_one(call);
  CVM_REQUIRE(wrong.empty(), wrong);
  wrong = check_axis(call);
  CVM_REQUIRE(wrong.empty(), wrong);
  const Operand& x = call.operand(0);
  const Shape& shape = call.result().shape;
  CVM_REQUIRE(x.shape == shape, "the operand's shape is not the result's");
  const int along = static_cast<int>(call.ints("axis", 1)->front());
  const Strides from = strides_of(x), to = strides_of(call.result());
  std::vector<CopyAxis> axes;
  for (int axis = 0; axis < shape.rank; ++axis) {
    axes.push_back({shape[axis], axis == along ? -from[at(axis)] : from[at(axis)], to[at(axis)]});
  }
  auto movement = std::make_unique<Movement>(call);
  movement->add(0, axes, (shape[along] - 1) * from[at(along)], 0);
  return finished(std::move(movement));
}

}  // namespace cvm
