// Chains: each stage with sources that it takes, and a few others behind it; epilogues of linear steps.
#include <algorithm>

#include "fuzz/random_plan.h"

namespace cvm::fuzz {
namespace {

constexpr DType kAll[] = {DType::boolean, DType::i8, DType::u8, DType::i16, DType::i32};
constexpr DType kSigned[] = {DType::i8, DType::i16, DType::i32};
constexpr DType kIntegers[] = {DType::i8, DType::u8, DType::i16, DType::i32};
constexpr DType kNarrow[] = {DType::i8, DType::i8, DType::u8, DType::i16};

// A chain as it grows: the dtype of each register.
class Chain {
 public:
  Chain(Draft& draft, const Shape& shape, bool has_accumulator) : d_(draft), shape_(shape) {
    if (has_accumulator) dtypes_.push_back(DType::i32);
  }

  int add(StageSpec stage, DType dtype) {
    d_.step().stages.push_back(std::move(stage));
    dtypes_.push_back(dtype);
    return static_cast<int>(dtypes_.size()) - 1;
  }

  // A new operand that broadcasts to the result as its step requires: on any axes, or over all rows.
  int load(DType dtype, bool whole = false) {
    Shape shape = shape_;
    const bool one_row = linear() && d_.random().one_in(2);
    for (int axis = 0; axis < shape.rank && !whole; ++axis) {
      const bool repeated = linear() && axis < shape.rank - 1 ? one_row : d_.random().one_in(4);
      if (repeated) shape[axis] = 1;
    }
    d_.operand(dtype, shape, Bytes::any);
    StageSpec stage;
    stage.operand = static_cast<int>(d_.step().operands.size()) - 1;
    return add(std::move(stage), dtype);
  }

  // What the step before passes.
  int load_passed() {
    d_.passed_operand();
    StageSpec stage;
    stage.operand = static_cast<int>(d_.step().operands.size()) - 1;
    return add(std::move(stage), DType::i32);
  }

  // A register of this dtype: one that is there, the last one if it fits, or a loaded one.
  int source(DType dtype) {
    if (!dtypes_.empty() && dtypes_.back() == dtype && !d_.random().one_in(3))
      return static_cast<int>(dtypes_.size()) - 1;
    for (std::size_t reg = 0; reg < dtypes_.size(); ++reg) {
      if (dtypes_[reg] == dtype && d_.random().one_in(2)) return static_cast<int>(reg);
    }
    return d_.step().operands.size() < 12 ? load(dtype) : cast(dtype);
  }

  int cast(DType dtype) { return cast_from(static_cast<int>(dtypes_.size()) - 1, dtype); }
  int cast_from(int source, DType dtype) {
    StageSpec stage{Opcode::cast_, {source}, -1, {}, {}};
    stage.attributes.set("dtype", {static_cast<std::int64_t>(dtype)});
    return add(std::move(stage), dtype);
  }

  int rescale(int source, DType to) {
    Random& random = d_.random();
    const DType from = dtypes_[static_cast<std::size_t>(source)];
    const Shape shape{1, {random.one_in(2) ? channels() : 1}};
    const bool high = random.one_in(2);  // shifts as sums of products have them
    const std::int64_t multiplier = d_.constant(DType::i32, shape, random.one_in(8) ? 0 : 1 << 30, highest(DType::i32));
    const std::int64_t shift = d_.constant(DType::i8, shape, high ? 33 : random.between(2, 30), high ? 45 : 62);
    StageSpec stage{Opcode::rescale_, {source}, -1, {multiplier, shift}, {}};
    stage.attributes.set("input_zp", {zero_point(from)});
    stage.attributes.set("output_zp", {zero_point(to)});
    stage.attributes.set("dtype", {static_cast<std::int64_t>(to)});
    return add(std::move(stage), to);
  }

  // Whether sums are of products of bytes, which leave room in 32 bits.
  bool sums_bytes() const {
    const auto& operands = d_.step().operands;
    return std::all_of(operands.begin(), operands.end(), [](const Operand& x) { return size_of(x.dtype) == 1; });
  }

  // Sums to bytes by powers of two, whose products fit 32 bits with all that is added, as the plan claims.
  int short_rescale() {
    const Shape shape{1, {d_.random().one_in(2) ? channels() : 1}};
    StageSpec stage{Opcode::rescale_, {0}, -1, {d_.constant(DType::i32, shape, 1 << 30, 1 << 30), d_.constant(DType::i8, shape, 31, 50)}, {}};
    stage.attributes.set("input_zp", {0});
    stage.attributes.set("output_zp", {zero_point(DType::i8)});
    stage.attributes.set("dtype", {static_cast<std::int64_t>(DType::i8)});
    stage.attributes.set("fits32", {1});
    return add(std::move(stage), DType::i8);
  }

  // The same integers in i32, but for their zero point: a rescale by 1.
  int widen(int source) {
    const Shape shape{1, {1}};
    StageSpec stage{Opcode::rescale_, {source}, -1, {d_.constant(DType::i32, shape, 1 << 30, 1 << 30), d_.constant(DType::i8, shape, 30, 30)}, {}};
    stage.attributes.set("input_zp", {zero_point(dtypes_[static_cast<std::size_t>(source)])});
    stage.attributes.set("output_zp", {0});
    stage.attributes.set("dtype", {static_cast<std::int64_t>(DType::i32)});
    return add(std::move(stage), DType::i32);
  }

  // By one constant for all.
  int shift(int source) {
    d_.constant_operand(DType::i32, shape_.rank, 0, 31);
    StageSpec load;
    load.operand = static_cast<int>(d_.step().operands.size()) - 1;
    const int amount = add(std::move(load), DType::i32);
    if (d_.random().one_in(2)) return plain(Opcode::shift_left_, {source, amount}, DType::i32);
    return plain(Opcode::shift_right_, {source, amount}, DType::i32, "round", d_.random().one_in(4) ? 0 : 1);
  }

  int clamp(int source) {
    const DType dtype = dtypes_[static_cast<std::size_t>(source)];
    const std::int64_t low = d_.random().between(lowest(dtype), highest(dtype));
    StageSpec stage{Opcode::clamp_, {source}, -1, {}, {}};
    stage.attributes.set("min", {low});
    stage.attributes.set("max", {d_.random().between(low, highest(dtype))});
    return add(std::move(stage), dtype);
  }

  int table(int source) {
    const DType from = dtypes_[static_cast<std::size_t>(source)], to = d_.random().pick(kSigned);
    const std::int64_t values = d_.constant(to, {1, {highest(from) - lowest(from) + 1}}, lowest(to), highest(to));
    return add({Opcode::table_, {source}, -1, {values}, {}}, to);
  }

  int interpolate(int source) {
    const DType values = d_.random().one_in(3) ? DType::i8 : DType::i16;
    const bool flat = d_.random().one_in(4);  // then a point and the one on the other side of the middle have one sum
    const std::int64_t low = flat ? d_.random().between(lowest(values), highest(values)) : lowest(values);
    const std::int64_t points = d_.constant(values, {1, {513}}, low, flat ? low : highest(values));
    return add({Opcode::interpolate_, {source}, -1, {points}, {}}, DType::i32);
  }

  // The sums times a gate of theirs.
  int gate() {
    const int place = rescale(0, DType::i16), value = d_.random().one_in(4) ? place : rescale(0, DType::i16);
    const int opened = interpolate(place), wide = cast_from(value, DType::i32);
    const std::int64_t shift = d_.random().one_in(8) ? d_.random().between(0, 63) : 7;
    return plain(Opcode::mul_, d_.random().one_in(2) ? std::vector{opened, wide} : std::vector{wide, opened}, DType::i32, "shift", shift);
  }

  int plain(Opcode opcode, std::vector<int> sources, DType dtype, const char* name = nullptr, std::int64_t value = 0) {
    StageSpec stage{opcode, std::move(sources), -1, {}, {}};
    if (name != nullptr) stage.attributes.set(name, {value});
    return add(std::move(stage), dtype);
  }

  int negate(int source) {
    const DType dtype = dtypes_[static_cast<std::size_t>(source)];
    StageSpec stage{Opcode::negate_, {source}, -1, {}, {}};
    for (const char* name : {"input_zp", "output_zp"}) {
      stage.attributes.set(name, {dtype == DType::i8 ? d_.random().between(-128, 127) : 0});
    }
    return add(std::move(stage), dtype);
  }

  DType last() const { return dtypes_.back(); }

 private:
  bool linear() const { return d_.step().opcode != Opcode::chain_; }
  std::int64_t channels() const { return shape_.last(); }
  std::int64_t zero_point(DType dtype) {
    const bool allowed = dtype == DType::i8 || dtype == DType::u8;
    return allowed ? d_.random().between(lowest(dtype), highest(dtype)) : 0;
  }

  Draft& d_;
  Shape shape_;
  std::vector<DType> dtypes_;
};

// One stage of this opcode, with its sources.
int draw_stage(Draft& d, Chain& chain, Opcode opcode) {
  Random& random = d.random();
  switch (opcode) {
    case Opcode::rescale_: {
      constexpr DType kTo[] = {DType::i8, DType::i16, DType::i32};
      const int source = chain.source(random.pick(kIntegers));
      return chain.rescale(source, random.pick(kTo));
    }
    case Opcode::clamp_:
      return chain.clamp(chain.source(random.pick(kAll)));
    case Opcode::cast_: {
      const int source = chain.source(random.pick(kAll));
      return chain.cast_from(source, random.pick(kAll));
    }
    case Opcode::table_:
      return chain.table(chain.source(random.one_in(8) ? DType::i16 : random.pick(kNarrow)));
    case Opcode::interpolate_:
      return chain.interpolate(chain.source(DType::i16));
    case Opcode::abs_:
    case Opcode::clz_:
    case Opcode::isqrt_:
      return chain.plain(opcode, {chain.source(DType::i32)}, DType::i32);
    case Opcode::negate_:
      return chain.negate(chain.source(random.pick(kSigned)));
    case Opcode::logical_not_:
      return chain.plain(opcode, {chain.source(DType::boolean)}, DType::boolean);
    case Opcode::select_: {
      const DType dtype = random.pick(kAll);
      const int condition = chain.source(DType::boolean), x = chain.source(dtype), y = chain.source(dtype);
      return chain.plain(opcode, {condition, x, y}, dtype);
    }
    default:
      break;
  }
  const bool shift = opcode == Opcode::shift_left_ || opcode == Opcode::shift_right_;
  const bool truth = opcode == Opcode::logical_and_ || opcode == Opcode::logical_or_;
  const bool compares = opcode == Opcode::equal_ || opcode == Opcode::greater_ || opcode == Opcode::greater_equal_;
  const DType from = shift || opcode == Opcode::mul_ ? random.pick(kSigned) : truth ? DType::boolean : DType::i32;
  const int x = chain.source(from), y = chain.source(from);
  if (opcode == Opcode::mul_) return chain.plain(opcode, {x, y}, DType::i32, "shift", random.between(0, 63));
  if (opcode == Opcode::shift_right_) return chain.plain(opcode, {x, y}, from, "round", random.between(0, 1));
  // What leaves its dtype is excluded by proofs, so that only the bytes that are stored of it are the same everywhere.
  if (opcode == Opcode::shift_left_) return chain.cast_from(chain.plain(opcode, {x, y}, from), from);
  return chain.plain(opcode, {x, y}, truth || compares ? DType::boolean : DType::i32);
}

Opcode any_stage(Random& random) {
  constexpr Opcode kStages[] = {
#define CVM_STAGE(name, number) Opcode::name##_,
      CVM_STAGES(CVM_STAGE)
#undef CVM_STAGE
  };
  Opcode opcode = random.pick(kStages);
  return opcode;
}

template <Opcode kOpcode>
void draw_chain(Draft& d) {
  d.step().opcode = Opcode::chain_;
  const int rank = static_cast<int>(d.random().between(0, kMaxRank));
  const Shape shape = random_shape(d.random(), rank, d.random().one_in(4) ? 3000 : 200);
  Chain chain(d, shape, false);
  draw_stage(d, chain, kOpcode);
  for (std::int64_t more = d.random().below(4); more > 0; --more) draw_stage(d, chain, any_stage(d.random()));
  d.result(chain.last(), shape, Bytes::any);
}

void draw_load(Draft& d) {
  d.step().opcode = Opcode::chain_;
  const Shape shape = random_shape(d.random(), static_cast<int>(d.random().between(0, kMaxRank)), 500);
  Chain chain(d, shape, false);
  chain.load(d.random().pick(kAll));
  d.result(chain.last(), shape, Bytes::any);
}

// sums (-> rescale, or shift) (+ shortcut): what kernels take before a last rescale.
int draw_sum(Draft& d, Chain& chain, int sums) {
  Random& random = d.random();
  const int own = random.one_in(4) ? sums : random.one_in(3) ? chain.shift(sums) : chain.rescale(sums, DType::i32);
  if (random.one_in(4)) return own;
  const DType dtype = random.pick(kSigned);
  int added = chain.load(dtype, true);
  if (dtype != DType::i32) added = chain.rescale(added, DType::i32);
  return chain.plain(Opcode::add_, random.one_in(2) ? std::vector{added, own} : std::vector{own, added}, DType::i32);
}

// The last rescale (-> clamp) (-> i32 again), to any width.
void draw_result(Draft& d, Chain& chain, int sum) {
  const DType dtype = d.random().pick(kSigned);
  int y = chain.rescale(sum, dtype);
  if (d.random().one_in(2)) y = chain.clamp(y);
  if (dtype != DType::i32 && d.random().one_in(4)) chain.widen(y);
}

// What kernels make of sums by a look-up at once, and what may follow.
void draw_look_up(Draft& d, Chain& chain, bool gate) {
  Random& random = d.random();
  const int value = gate ? chain.gate() : chain.table(chain.rescale(0, DType::i8));
  if (random.one_in(4)) return;
  if (random.one_in(8)) return draw_result(d, chain, 0);  // as if nothing had been looked up
  draw_result(d, chain, chain.last() == DType::i32 && random.one_in(2) ? draw_sum(d, chain, value) : value);
}

}  // namespace

void draw_epilogue(Draft& d, const Shape& shape) {
  Chain chain(d, shape, true);
  const std::int64_t kind = d.random().below(10);
  if (kind < 2) {
    const bool is_short = chain.sums_bytes() && d.random().one_in(2);
    const int bytes = is_short ? chain.short_rescale() : chain.rescale(0, DType::i8);
    if (kind == 1) chain.clamp(bytes);
  } else if (kind < 4) {
    draw_result(d, chain, draw_sum(d, chain, 0));
  } else if (kind == 4) {
    draw_result(d, chain, 0);
  } else if (kind == 5) {
    draw_sum(d, chain, 0);
  } else if (kind == 6) {
    for (std::int64_t more = d.random().between(1, 3); more > 0; --more) draw_stage(d, chain, any_stage(d.random()));
  } else if (kind >= 8) {
    draw_look_up(d, chain, kind == 8);
  }
  d.result(chain.last(), shape, Bytes::any);
}

void draw_passed_sums(Draft& d, const Shape& shape) {
  Chain chain(d, shape, true);
  if (!d.random().one_in(6)) chain.rescale(0, DType::i32);
  d.pass(DType::i32, shape);
}

void draw_sum_with_passed(Draft& d, const Shape& shape) {
  Chain chain(d, shape, true);
  const int own = d.random().one_in(3) ? 0 : chain.rescale(0, DType::i32), passed = chain.load_passed();
  const std::vector<int> both = d.random().one_in(2) ? std::vector{passed, own} : std::vector{own, passed};
  const int sum = chain.plain(Opcode::add_, both, DType::i32);
  if (d.random().one_in(4)) {
    draw_result(d, chain, sum);
  } else {
    chain.rescale(sum, DType::i8);
  }
  d.result(chain.last(), shape, Bytes::any);
}

void add_stage_subjects(std::vector<Subject>& list) {
  list.push_back({"load", draw_load});
#define CVM_STAGE(name, number) list.push_back({#name, draw_chain<Opcode::name##_>});
  CVM_STAGES(CVM_STAGE)
#undef CVM_STAGE
}

}  // namespace cvm::fuzz
