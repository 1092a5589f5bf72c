// Choosing among boxes.
#include "fuzz/random_plan.h"

namespace cvm::fuzz {
namespace {

constexpr std::int64_t kDenominators[] = {1, 10, std::int64_t{1} << 30};

void draw_small(Draft& d, const Shape& shape, std::int64_t low, std::int64_t high) {
  const std::int64_t number = d.constant(DType::i32, shape, low, high);
  d.step().operands.push_back({Room::constant, number, DType::i32, shape, shape.last()});
}

// Half of the drafts have constants of a few small values, which overlap and tie. The others have any integers, so that
// most coordinates are more than a proof lets in: the step stops them at an end.
void draw_nms(Draft& d) {
  const std::int64_t batch = d.random().between(1, 3), count = d.random().between(1, d.random().one_in(4) ? 400 : 30);
  const bool gaps = d.random().one_in(3);
  const std::int64_t candidates = d.random().between(1, count);
  const std::int64_t keep = gaps ? candidates : d.random().between(1, candidates);
  const std::int64_t q = d.random().pick(kDenominators);
  const Shape boxes{3, {batch, count, 4}}, scores{2, {batch, count}};
  const Shape classes{2, {batch, d.random().one_in(3) ? 1 : count}};
  d.step().opcode = Opcode::nms_;
  d.step().attributes.set("keep", {keep});
  d.step().attributes.set("candidates", {candidates});
  d.step().attributes.set("overlap", {d.random().between(0, q), q});
  d.step().attributes.set("inclusive", {d.random().below(2)});
  d.step().attributes.set("gaps", {gaps});
  if (d.random().one_in(2)) {
    d.step().attributes.set("least_score", {d.random().between(-3, 1)});
    draw_small(d, boxes, -2, 6);
    draw_small(d, scores, -3, 3);
    draw_small(d, classes, 0, 2);
  } else {
    d.step().attributes.set("least_score", {d.random().between(lowest(DType::i32), highest(DType::i32))});
    d.operand(DType::i32, boxes, Bytes::any, Rows::dense);
    d.operand(DType::i32, scores, Bytes::any, Rows::dense);
    d.operand(DType::i32, classes, Bytes::any, Rows::dense);
  }
  d.result(DType::i32, {2, {batch, keep}}, Bytes::any, Rows::dense);
}

}  // namespace

void add_detection_subjects(std::vector<Subject>& list) { list.push_back({"nms", draw_nms}); }

}  // namespace cvm::fuzz
