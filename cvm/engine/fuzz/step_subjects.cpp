// Movement, resize, gather, reductions and pooling.
#include <algorithm>
#include <utility>

#include "fuzz/random_plan.h"

namespace cvm::fuzz {
namespace {

constexpr DType kAll[] = {DType::boolean, DType::i8, DType::u8, DType::i16, DType::i32};
constexpr DType kSigned[] = {DType::i8, DType::i16, DType::i32};
constexpr std::int64_t kMost = 2000;  // elements

using Integers = std::vector<std::int64_t>;

Integers dims_of(const Shape& shape) { return {shape.dims.begin(), shape.dims.begin() + shape.rank}; }

int draw_rank(Draft& d, int least) { return static_cast<int>(d.random().between(least, kMaxRank)); }

void set(Draft& d, Opcode opcode, const char* name, Integers values) {
  d.step().opcode = opcode;
  d.step().attributes.set(name, std::move(values));
}

void draw_reshape(Draft& d) {
  const DType dtype = d.random().pick(kAll);
  const Shape x = random_shape(d.random(), draw_rank(d, 0), kMost);
  Shape y{1, {x.elements()}};
  for (int axis = 0; axis < kMaxRank - 1 && d.random().one_in(2); ++axis) {  // split off what divides
    const std::int64_t factor = d.random().between(1, 4);
    if (y.last() % factor != 0) continue;
    const std::int64_t rest = y.last() / factor;
    y[y.rank - 1] = factor, y[y.rank++] = rest;
  }
  set(d, Opcode::reshape_, "shape", dims_of(y));
  d.operand(dtype, x, Bytes::any);
  d.result(dtype, y, Bytes::any);
}

void draw_transpose(Draft& d) {
  const DType dtype = d.random().pick(kAll);
  const Shape x = random_shape(d.random(), draw_rank(d, 0), kMost);
  Integers perm;
  for (int axis = 0; axis < x.rank; ++axis) perm.push_back(axis);
  for (int axis = x.rank - 1; axis > 0; --axis) {
    std::swap(perm[static_cast<std::size_t>(axis)], perm[static_cast<std::size_t>(d.random().between(0, axis))]);
  }
  Shape y = x;
  for (int axis = 0; axis < x.rank; ++axis) y[axis] = x[static_cast<int>(perm[static_cast<std::size_t>(axis)])];
  set(d, Opcode::transpose_, "perm", perm);
  d.operand(dtype, x, Bytes::any);
  d.result(dtype, y, Bytes::any);
}

void draw_concat(Draft& d) {
  const DType dtype = d.random().pick(kAll);
  Shape shape = random_shape(d.random(), draw_rank(d, 1), kMost / 4);
  const int axis = static_cast<int>(d.random().below(shape.rank));
  std::int64_t total = 0;
  for (std::int64_t count = d.random().between(1, 4); count > 0; --count) {
    shape[axis] = d.random().between(1, 5);
    total += shape[axis];
    d.operand(dtype, shape, Bytes::any);
  }
  shape[axis] = total;
  set(d, Opcode::concat_, "axis", {axis});
  d.result(dtype, shape, Bytes::any);
}

void draw_slice(Draft& d) {
  const DType dtype = d.random().pick(kAll);
  const Shape x = random_shape(d.random(), draw_rank(d, 0), kMost);
  Shape y = x;
  Integers start;
  for (int axis = 0; axis < x.rank; ++axis) {
    y[axis] = d.random().between(1, x[axis]);
    start.push_back(d.random().between(0, x[axis] - y[axis]));
  }
  set(d, Opcode::slice_, "start", start);
  set(d, Opcode::slice_, "size", dims_of(y));
  d.operand(dtype, x, Bytes::any);
  d.result(dtype, y, Bytes::any);
}

void draw_pad(Draft& d) {
  const DType dtype = d.random().pick(kAll);
  const Shape x = random_shape(d.random(), draw_rank(d, 0), 100);
  Shape y = x;
  Integers pads;
  for (int axis = 0; axis < x.rank; ++axis) {
    const std::int64_t before = d.random().below(3), after = d.random().below(3);
    y[axis] += before + after;
    pads.insert(pads.end(), {before, after});
  }
  set(d, Opcode::pad_, "pads", pads);
  set(d, Opcode::pad_, "value", {d.random().between(lowest(dtype), highest(dtype))});
  d.operand(dtype, x, Bytes::any);
  d.result(dtype, y, Bytes::any);
}

void draw_tile(Draft& d) {
  const DType dtype = d.random().pick(kAll);
  const Shape x = random_shape(d.random(), draw_rank(d, 0), 100);
  Shape y = x;
  Integers multiples;
  for (int axis = 0; axis < x.rank; ++axis) {
    multiples.push_back(d.random().between(1, 3));
    y[axis] *= multiples.back();
  }
  set(d, Opcode::tile_, "multiples", multiples);
  d.operand(dtype, x, Bytes::any);
  d.result(dtype, y, Bytes::any);
}

void draw_reverse(Draft& d) {
  const DType dtype = d.random().pick(kAll);
  const Shape x = random_shape(d.random(), draw_rank(d, 1), kMost);
  set(d, Opcode::reverse_, "axis", {d.random().below(x.rank)});
  d.operand(dtype, x, Bytes::any);
  d.result(dtype, x, Bytes::any);
}

void draw_gather(Draft& d) {
  const DType dtype = d.random().pick(kAll);
  const std::int64_t batch = d.random().between(1, 3), rows = d.random().between(1, 9),
                     picks = d.random().between(1, 20);
  const std::int64_t width = d.random().between(1, 40);
  d.step().opcode = Opcode::gather_;
  d.operand(dtype, {3, {batch, rows, width}}, Bytes::any);
  d.operand(DType::i32, {2, {batch, picks}}, Bytes::any);
  d.result(dtype, {3, {batch, picks, width}}, Bytes::any);
}

// One axis of a resize: places first, then a border that makes the sizes agree.
struct Resized {
  std::int64_t size, out, n, d, offset, border;
};

Resized draw_resized(Random& random) {
  while (true) {
    Resized r{random.between(1, 9), 0, random.between(1, 4), 0, 0, 0};
    r.d = random.between(1, std::min<std::int64_t>(4, 16 * r.n - 1));
    r.offset = random.between(-r.n, std::min<std::int64_t>(3, 16 * r.n - 1));
    r.border = random.between(-3, r.n - 1);
    const std::int64_t room = (r.size - 1) * r.n - r.offset + r.border;
    if (room < 0 || room % r.d != 0 || r.border < -16 * r.n) continue;
    r.out = room / r.d + 1;
    return r;
  }
}

void draw_resize(Draft& d) {
  const bool bilinear = d.random().one_in(2);
  const DType from = bilinear ? (d.random().one_in(2) ? DType::i8 : DType::i16) : d.random().pick(kAll);
  const Resized down = draw_resized(d.random()), right = draw_resized(d.random());
  const std::int64_t batch = d.random().between(1, 2), channels = d.random().between(1, 20);
  set(d, Opcode::resize_, "scale", {down.n, down.d, right.n, right.d});
  set(d, Opcode::resize_, "offset", {down.offset, right.offset});
  set(d, Opcode::resize_, "border", {down.border, right.border});
  set(d, Opcode::resize_, "mode", {bilinear ? 1 : 0});
  d.operand(from, {4, {batch, down.size, right.size, channels}}, Bytes::any);
  d.result(bilinear ? DType::i32 : from, {4, {batch, down.out, right.out, channels}}, Bytes::any);
}

template <Opcode kOpcode>
void draw_reduce(Draft& d) {
  const DType dtype = kOpcode == Opcode::reduce_sum_ ? DType::i32 : d.random().pick(kSigned);
  const Shape x = random_shape(d.random(), draw_rank(d, 1), kMost);
  const int axis = static_cast<int>(d.random().below(x.rank));
  Shape y = x;
  y[axis] = 1;
  set(d, kOpcode, "axis", {axis});
  d.operand(dtype, x, Bytes::stored, Rows::dense);
  d.result(dtype, y, Bytes::stored, Rows::dense);
}

void draw_argmax(Draft& d) {
  const Shape x = random_shape(d.random(), draw_rank(d, 1), kMost);
  const int axis = static_cast<int>(d.random().below(x.rank));
  Shape y{x.rank - 1, {}};
  for (int other = 0, to = 0; other < x.rank; ++other) {
    if (other != axis) y[to++] = x[other];
  }
  set(d, Opcode::argmax_, "axis", {axis});
  d.operand(d.random().pick(kSigned), x, Bytes::stored, Rows::dense);
  d.result(DType::i32, y, Bytes::stored, Rows::dense);
}

void draw_argsort(Draft& d) {
  const Shape x = random_shape(d.random(), draw_rank(d, 1), kMost);
  set(d, Opcode::argsort_, "descending", {d.random().below(2)});
  d.operand(d.random().pick(kSigned), x, Bytes::stored, Rows::dense);
  d.result(DType::i32, x, Bytes::stored, Rows::dense);
}

struct Window {
  std::int64_t size, out, kernel, stride, before, after;
};

Window draw_window(Random& random) {
  while (true) {
    Window w{random.between(1, 12), 0, random.between(1, 4), random.between(1, 3), 0, 0};
    w.before = random.below(w.kernel), w.after = random.below(w.kernel);
    const std::int64_t room = w.size + w.before + w.after - w.kernel;
    if (room < 0 || room % w.stride != 0) continue;
    w.out = room / w.stride + 1;
    return w;
  }
}

void draw_pool(Draft& d, Opcode opcode, DType dtype) {
  const Window down = draw_window(d.random()), right = draw_window(d.random());
  const std::int64_t batch = d.random().between(1, 2),
                     channels = d.random().between(1, d.random().one_in(4) ? 140 : 20);
  set(d, opcode, "kernel", {down.kernel, right.kernel});
  set(d, opcode, "stride", {down.stride, right.stride});
  set(d, opcode, "pad", {down.before, down.after, right.before, right.after});
  d.operand(dtype, {4, {batch, down.size, right.size, channels}}, Bytes::stored);
  d.result(dtype, {4, {batch, down.out, right.out, channels}}, Bytes::stored);
}

void draw_max_pool(Draft& d) { draw_pool(d, Opcode::max_pool2d_, d.random().pick(kSigned)); }

void draw_avg_pool(Draft& d) {
  const DType dtype = d.random().one_in(2) ? DType::i8 : DType::i16;
  draw_pool(d, Opcode::avg_pool2d_, dtype);
  for (const char* name : {"input_zp", "output_zp"}) {
    d.step().attributes.set(name, {dtype == DType::i8 ? d.random().between(-128, 127) : 0});
  }
}

}  // namespace

void add_other_subjects(std::vector<Subject>& list) {
  list.insert(list.end(), {{"gather", draw_gather},
                           {"reduce_sum", draw_reduce<Opcode::reduce_sum_>},
                           {"reduce_max", draw_reduce<Opcode::reduce_max_>},
                           {"reduce_min", draw_reduce<Opcode::reduce_min_>},
                           {"argmax", draw_argmax},
                           {"argsort", draw_argsort},
                           {"max_pool2d", draw_max_pool},
                           {"avg_pool2d", draw_avg_pool},
                           {"reshape", draw_reshape},
                           {"transpose", draw_transpose},
                           {"concat", draw_concat},
                           {"slice", draw_slice},
                           {"pad", draw_pad},
                           {"tile", draw_tile},
                           {"reverse", draw_reverse},
                           {"resize", draw_resize}});
}

}  // namespace cvm::fuzz
