// Plan files, decoded: a prefix of 16 bytes, a header of 64-bit words, constants at multiples of 64 bytes. All integers
// are little-endian; a text is its length and its bytes, padded with zeros to whole words. Only one string of bytes
// stands for one plan file: what is not zero where it must be, or lies beyond the end, is refused.
#include "library/plan_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace cvm {
namespace {

static_assert(std::endian::native == std::endian::little, "constants of plan files are read as they lie");

constexpr std::string_view kMagic = "\x89" "CVMPLN\x01";  // the last byte is the format's version
constexpr std::size_t kPrefix = 16, kWord = 8, kLine = 64;
constexpr std::int64_t kMaxText = 256;

// Takes words from the header, one after the other. After the first fault it gives zeros, and `fault` has the sentence.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> header) : left_(header) {}

  std::int64_t word() {
    std::int64_t value = 0;
    if (left_.size() < kWord) return fail("the header ends too early");
    std::memcpy(&value, left_.data(), kWord);
    left_ = left_.subspan(kWord);
    return value;
  }

  std::int64_t word(std::int64_t least, std::int64_t most, const char* what) {
    const std::int64_t value = word();
    if (value < least || value > most) return fail(std::string(what) + " is " + std::to_string(value)), least;
    return value;
  }

  // Of items that take at least `words` words each: what follows could hold them.
  std::size_t count(std::size_t words) {
    const std::int64_t value = word();
    const std::size_t most = left_.size() / (words * kWord);
    if (value >= 0 && static_cast<std::uint64_t>(value) <= most) return static_cast<std::size_t>(value);
    fail("a list is longer than the header");
    return 0;
  }

  std::string text() {
    const auto size = static_cast<std::size_t>(word(0, kMaxText, "the length of a text"));
    const std::size_t padded = (size + kWord - 1) / kWord * kWord;
    if (left_.size() < padded) return fail("the header ends too early"), "";
    const std::string value(reinterpret_cast<const char*>(left_.data()), size);
    const auto padding = left_.subspan(size, padded - size);
    left_ = left_.subspan(padded);
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (!std::all_of(padding.begin(), padding.end(), is_zero) || value.find('\0') != std::string::npos)
      fail("a text holds a zero, or is not padded with zeros");
    return value;
  }

  std::vector<std::int64_t> words() {
    std::vector<std::int64_t> values(count(1));
    for (std::int64_t& value : values) value = word();
    return values;
  }

  std::int64_t fail(std::string sentence) {
    if (fault_.empty()) fault_ = std::move(sentence);
    left_ = {};
    return 0;
  }
  const Problem& fault() const { return fault_; }
  bool ended() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
  Problem fault_;
};

int read_int(Reader& reader, int least, int most, const char* what) {
  return static_cast<int>(reader.word(least, most, what));
}

DType read_dtype(Reader& reader) { return static_cast<DType>(reader.word(0, 4, "a dtype")); }

Shape read_shape(Reader& reader) {
  Shape shape;
  shape.rank = read_int(reader, 0, kMaxRank, "a rank");
  for (int axis = 0; axis < shape.rank; ++axis) shape[axis] = reader.word(1, kMaxElements, "a dimension");
  return shape;
}

Operand read_operand(Reader& reader) {
  Operand operand;
  operand.room = static_cast<Room>(reader.word(0, 4, "a room"));
  operand.position = reader.word();
  operand.dtype = read_dtype(reader);
  operand.shape = read_shape(reader);
  operand.pitch = reader.word();
  return operand;
}

Attributes read_attributes(Reader& reader) {
  Attributes attributes;
  std::string previous;
  for (std::size_t count = reader.count(2); count > 0; --count) {
    const std::string name = reader.text();
    if (name <= previous) reader.fail("attributes are not in the order of their names");
    previous = name;
    attributes.set(name, reader.words());
  }
  return attributes;
}

StageSpec read_stage(Reader& reader) {
  StageSpec stage;
  stage.opcode = static_cast<Opcode>(read_int(reader, 0, 255, "an opcode"));
  for (const std::int64_t source : reader.words()) {
    if (source < 0 || source > kMaxElements) reader.fail("a register is " + std::to_string(source));
    stage.sources.push_back(static_cast<int>(source & kMaxElements));
  }
  stage.operand = read_int(reader, -1, static_cast<int>(kMaxElements), "an operand of a stage");
  stage.parameters = reader.words();
  stage.attributes = read_attributes(reader);
  return stage;
}

StepSpec read_step(Reader& reader) {
  StepSpec step;
  step.opcode = static_cast<Opcode>(read_int(reader, 0, 255, "an opcode"));
  for (std::size_t count = reader.count(5); count > 0; --count) step.operands.push_back(read_operand(reader));
  step.parameters = reader.words();
  step.result = read_operand(reader);
  step.attributes = read_attributes(reader);
  for (std::size_t count = reader.count(5); count > 0; --count) step.stages.push_back(read_stage(reader));
  return step;
}

void read_ports(Reader& reader, std::vector<Port>& ports, std::vector<Operand>& operands) {
  for (std::size_t count = reader.count(5); count > 0; --count) {
    Port port;
    Operand operand;
    port.name = reader.text();
    operand.dtype = read_dtype(reader);
    operand.shape = read_shape(reader);
    operand.pitch = operand.shape.last();
    port.lo = reader.word(lowest(operand.dtype), highest(operand.dtype), "the low end of an interval");
    port.hi = reader.word(port.lo, highest(operand.dtype), "the high end of an interval");
    ports.push_back(std::move(port));
    operands.push_back(operand);
  }
}

void read_identity(Reader& reader, PlanFile& file) {
  const std::string version = reader.text();
  if (version != CVM_VERSION) {
    reader.fail("the plan was written by cvm " + version + ", and this is libcvm " + CVM_VERSION +
                ": write it again with `cvm plan` of this version");
  }
  file.program_id = reader.text();
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (file.program_id.size() != 64 || !std::all_of(file.program_id.begin(), file.program_id.end(), is_hex))
    reader.fail("the program id is not 64 hexadecimal digits");
}

void read_header(Reader& reader, PlanFile& file) {
  read_identity(reader, file);
  read_ports(reader, file.inputs, file.plan.inputs);
  read_ports(reader, file.outputs, file.plan.outputs);
  file.plan.arena_bytes = reader.word();
  for (std::size_t count = reader.count(2); count > 0; --count) {
    const DType dtype = read_dtype(reader);
    file.plan.constants.push_back({dtype, read_shape(reader), nullptr});
  }
  for (std::size_t count = reader.count(12); count > 0; --count) file.plan.steps.push_back(read_step(reader));
  if (!reader.ended()) reader.fail("the header goes on after its end");
}

// The bytes of a shape whose dimensions are in bounds, but whose product may not be: at most 2^37.
std::size_t bytes_of(const Constant& constant) {
  std::uint64_t count = 1;
  for (int axis = 0; axis < constant.shape.rank; ++axis)
    count = std::min(count * static_cast<std::uint64_t>(constant.shape[axis]), std::uint64_t{1} << 32);
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(size_of(constant.dtype));
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

// Zeros up to the next multiple of 64 bytes; false if there is anything else.
bool skip_padding(std::span<const std::byte> bytes, std::size_t& place) {
  const std::size_t next = (place + kLine - 1) / kLine * kLine;
  if (next > bytes.size() || !all_zero(bytes.subspan(place, next - place))) return false;
  place = next;
  return true;
}

Problem place_constants(std::span<const std::byte> bytes, std::size_t place, std::vector<Constant>& constants) {
  CVM_REQUIRE(skip_padding(bytes, place), "zeros are missing after the header");
  for (Constant& constant : constants) {
    const std::size_t size = bytes_of(constant);
    CVM_REQUIRE(size <= bytes.size() - place, "the file ends inside a constant");
    constant.data = bytes.data() + place;
    place += size;
    CVM_REQUIRE(skip_padding(bytes, place), "zeros are missing after a constant");
  }
  CVM_REQUIRE(place == bytes.size(), "the file goes on after its end");
  return {};
}

}  // namespace

Expected<PlanFile> decode_plan_file(std::span<const std::byte> bytes) {
  CVM_REQUIRE(bytes.size() >= kPrefix && std::memcmp(bytes.data(), kMagic.data(), kMagic.size() - 1) == 0,
              "this is not a plan file; `cvm plan P.cvm -o P.plan` writes one");
  CVM_REQUIRE(bytes[kMagic.size() - 1] == static_cast<std::byte>(kMagic.back()),
              "the file's format has another version: write it again with `cvm plan` of this version");
  CVM_REQUIRE(bytes.size() <= kMaxPlanBytes, "the file is too large");
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data() + kWord, kWord);
  CVM_REQUIRE(size % kWord == 0 && size <= bytes.size() - kPrefix, "the file ends inside the header");
  PlanFile file{AlignedBytes(static_cast<std::int64_t>(bytes.size())), {}, {}, {}, {}};
  std::memcpy(file.bytes.data(), bytes.data(), bytes.size());
  const std::span<const std::byte> copy(file.bytes.data(), bytes.size());
  Reader reader(copy.subspan(kPrefix, static_cast<std::size_t>(size)));
  read_header(reader, file);
  CVM_REQUIRE(reader.fault().empty(), reader.fault());
  const Problem wrong = place_constants(copy, kPrefix + static_cast<std::size_t>(size), file.plan.constants);
  CVM_REQUIRE(wrong.empty(), wrong);
  return file;
}

}  // namespace cvm
