// nms: the best boxes, without those that overlap a better one of their class too much.
#include <algorithm>

#include "step.h"

namespace cvm {
namespace {

constexpr std::int64_t kGreatestDenominator = std::int64_t{1} << 30;

struct Choice {
  std::int64_t keep, candidates;
  std::int32_t least_score;
  std::int64_t numerator, denominator;
  bool inclusive, gaps;
};

// Coordinates within i16, so that no area and no product with a part of the overlap leaves 64 bits.
struct Box {
  std::int32_t x0, y0, x1, y1, label;
  std::int64_t area;
};

std::int64_t area_of(std::int32_t x0, std::int32_t y0, std::int32_t x1, std::int32_t y1) {
  return std::int64_t{std::max(x1 - x0, 0)} * std::max(y1 - y0, 0);
}

Box read_box(const std::int32_t* at, std::int32_t label) {
  const auto coordinate = [at](int i) { return std::clamp(at[i], -32768, 32767); };  // all that a proof lets in
  Box box{coordinate(0), coordinate(1), coordinate(2), coordinate(3), label, 0};
  box.area = area_of(box.x0, box.y0, box.x1, box.y1);
  return box;
}

// Ascending keys are descending scores, and ascending indices among equals.
std::uint64_t key_of(std::int32_t score, std::int64_t index) {
  return std::uint64_t{static_cast<std::uint32_t>(score) ^ 0x7FFFFFFFu} << 32 | static_cast<std::uint64_t>(index);
}

std::int64_t index_of(std::uint64_t key) { return static_cast<std::int64_t>(key & 0xFFFFFFFFu); }

// A piece is a sample: each candidate is compared with those kept before it.
class Nms final : public Kernel {
 public:
  Nms(const StepCall& call, const Choice& choice)
      : boxes_(call.operand(0)),
        scores_(call.operand(1)),
        classes_(call.operand(2)),
        y_(call.result()),
        choice_(choice) {}

  std::int64_t pieces() const override { return boxes_.shape[0]; }

  std::int64_t scratch_bytes() const override {
    return count() * static_cast<std::int64_t>(sizeof(std::uint64_t)) +
           choice_.keep * static_cast<std::int64_t>(sizeof(Box));
  }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    auto* keys = reinterpret_cast<std::uint64_t*>(scratch);
    Box* kept = reinterpret_cast<Box*>(keys + count());
    const std::int64_t labels = classes_.shape[1];
    for (std::int64_t sample = part.begin; sample < part.end; ++sample) {
      const std::int32_t* boxes = read(buffers, boxes_) + sample * count() * 4;
      const std::int32_t* classes = read(buffers, classes_) + sample * labels;
      std::int32_t* y = reinterpret_cast<std::int32_t*>(buffers.write(y_)) + sample * choice_.keep;
      const std::int64_t candidates = sort(read(buffers, scores_) + sample * count(), keys);
      std::fill_n(y, choice_.keep, static_cast<std::int32_t>(count()));
      std::int64_t kept_count = 0;
      for (std::int64_t place = 0; place < candidates && kept_count < choice_.keep; ++place) {
        const std::int64_t index = index_of(keys[place]);
        const Box box = read_box(boxes + index * 4, classes[labels == 1 ? 0 : index]);
        if (is_suppressed(box, kept, kept_count)) continue;
        y[choice_.gaps ? place : kept_count] = static_cast<std::int32_t>(index);
        kept[kept_count++] = box;
      }
    }
  }

 private:
  static const std::int32_t* read(const Buffers& buffers, const Operand& operand) {
    return reinterpret_cast<const std::int32_t*>(buffers.read(operand));
  }

  std::int64_t count() const { return boxes_.shape[1]; }

  // Puts the candidates first, in order, and returns how many there are. No two keys are equal: the sort need not be
  // stable.
  std::int64_t sort(const std::int32_t* scores, std::uint64_t* keys) const {
    std::uint64_t* end = keys;
    for (std::int64_t i = 0; i < count(); ++i) {
      if (scores[i] >= choice_.least_score) *end++ = key_of(scores[i], i);
    }
    const std::int64_t candidates = std::min<std::int64_t>(end - keys, choice_.candidates);
    if (candidates < end - keys) std::nth_element(keys, keys + candidates, end);
    std::sort(keys, keys + candidates);
    return candidates;
  }

  bool is_suppressed(const Box& box, const Box* kept, std::int64_t kept_count) const {
    for (std::int64_t i = 0; i < kept_count; ++i) {
      const Box& rival = kept[i];
      if (rival.label != box.label) continue;
      const std::int64_t both = area_of(std::max(box.x0, rival.x0), std::max(box.y0, rival.y0),
                                        std::min(box.x1, rival.x1), std::min(box.y1, rival.y1));
      const std::int64_t either = box.area + rival.area - both;
      const std::int64_t share = both * choice_.denominator, limit = choice_.numerator * either;
      if (either > 0 && (share > limit || (choice_.inclusive && share == limit))) return true;
    }
    return false;
  }

  const Operand boxes_, scores_, classes_, y_;
  const Choice choice_;
};

Expected<Choice> read_choice(const StepCall& call, std::int64_t count) {
  const auto* keep = call.ints("keep", 1);
  const auto* candidates = call.ints("candidates", 1);
  const auto* least_score = call.ints("least_score", 1);
  const auto* overlap = call.ints("overlap", 2);
  const auto* inclusive = call.ints("inclusive", 1);
  const auto* gaps = call.ints("gaps", 1);
  CVM_REQUIRE(keep && candidates && least_score && overlap && inclusive && gaps, "an attribute is missing");
  const Choice choice{(*keep)[0],     (*candidates)[0], static_cast<std::int32_t>((*least_score)[0]),
                      (*overlap)[0],  (*overlap)[1],    (*inclusive)[0] != 0,
                      (*gaps)[0] != 0};
  CVM_REQUIRE(choice.keep >= 1 && choice.keep <= choice.candidates && choice.candidates <= count,
              "keep or candidates is out of range");
  CVM_REQUIRE((*least_score)[0] == choice.least_score, "least_score does not fit i32");
  CVM_REQUIRE(choice.numerator >= 0 && choice.numerator <= choice.denominator && choice.denominator >= 1 &&
                  choice.denominator <= kGreatestDenominator,
              "overlap is not a fraction of at most 1");
  CVM_REQUIRE(!choice.gaps || choice.keep == choice.candidates, "keep differs from candidates in spite of gaps");
  return choice;
}

}  // namespace

Made make_step_nms(const StepCall& call) {
  CVM_REQUIRE(call.takes(3, 0), "takes boxes, scores and classes");
  for (const Operand* operand : {&call.operand(0), &call.operand(1), &call.operand(2), &call.result()}) {
    CVM_REQUIRE(operand->dtype == DType::i32 && operand->dense(), "an operand or the result is not dense i32");
  }
  const Shape &boxes = call.operand(0).shape, &scores = call.operand(1).shape, &classes = call.operand(2).shape;
  CVM_REQUIRE(boxes.rank == 3 && scores.rank == 2 && classes.rank == 2,
              "boxes, scores and classes are not of rank 3, 2 and 2");
  CVM_REQUIRE(boxes[2] == 4 && scores[0] == boxes[0] && scores[1] == boxes[1] && classes[0] == boxes[0] &&
                  (classes[1] == boxes[1] || classes[1] == 1),
              "the shapes of boxes, scores and classes do not agree");
  Expected<Choice> choice = read_choice(call, boxes[1]);
  if (!choice) return choice.problem();
  CVM_REQUIRE((call.result().shape == Shape{2, {boxes[0], choice->keep}}), "the result is not [B,keep]");
  return Made(std::make_unique<Nms>(call, *choice));
}

}  // namespace cvm
