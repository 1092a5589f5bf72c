// plan_bytes FILE [COUNT]: what libcvm does with a plan file that was changed. Each of its first COUNT bytes, or of all,
// becomes every other byte; the file is also cut at every length. What comes of it is refused or runs. Built with
// sanitizers, which end the program at a read or write out of bounds.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "library/cvm.h"

namespace {

constexpr std::int64_t kMostMemory = 1 << 20;
constexpr std::int64_t kMostBytes = 1 << 20;  // of one input or output

using Bytes = std::vector<char>;

struct Counts {
  long taken = 0, refused = 0;
};

// Exactly as many bytes as the port states, and one value inside its interval.
Bytes array_for(const cvm_port& port) {
  Bytes bytes(static_cast<std::size_t>(port.bytes));
  const int width = port.dtype == CVM_I32 ? 4 : port.dtype == CVM_I16 ? 2 : 1;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(static_cast<std::uint32_t>(port.lo) >> (8 * (i % static_cast<std::size_t>(width))));
  return bytes;
}

void run(const cvm_plan* plan) {
  std::vector<Bytes> arrays;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  const std::size_t first_output = cvm_inputs(plan), count = first_output + cvm_outputs(plan);
  for (std::size_t i = 0; i < count; ++i) {
    const cvm_port* port = i < first_output ? cvm_input(plan, i) : cvm_output(plan, i - first_output);
    if (port->bytes > kMostBytes) return;
    arrays.push_back(array_for(*port));
  }
  for (std::size_t i = 0; i < first_output; ++i) inputs.push_back(arrays[i].data());
  for (std::size_t i = first_output; i < count; ++i) outputs.push_back(arrays[i].data());
  cvm_error error;
  if (cvm_run(plan, inputs.data(), outputs.data(), 2, &error) != 0) {
    std::fprintf(stderr, "a plan that was taken does not run: %s\n", error.text);
    std::abort();
  }
}

void offer(const char* bytes, std::size_t count, Counts& counts) {
  cvm_error error;
  cvm_plan* plan = cvm_open_bytes(bytes, count, kMostMemory, &error);
  ++(plan == nullptr ? counts.refused : counts.taken);
  if ((plan == nullptr) == (error.text[0] == '\0')) {
    std::fprintf(stderr, "a refusal has no reason, or what was taken has one\n");
    std::abort();
  }
  if (plan != nullptr) run(plan);
  cvm_free(plan);
}

// A copy of its own, so that a sanitizer sees what is read beyond the end.
void offer_cut(const Bytes& bytes, std::size_t length, Counts& counts) {
  const std::unique_ptr<char[]> copy(new char[length]);
  std::copy_n(bytes.begin(), length, copy.get());
  offer(copy.get(), length, counts);
}

void change_each(Bytes bytes, std::size_t begin, std::size_t end, Counts& counts) {
  for (std::size_t place = begin; place < end; ++place) {
    const char before = bytes[place];
    for (int change = 1; change < 256; ++change) {
      bytes[place] = static_cast<char>(before ^ change);
      offer(bytes.data(), bytes.size(), counts);
    }
    bytes[place] = before;
  }
}

}  // namespace

int main(int words, char** arguments) {
  std::ifstream file(words > 1 ? arguments[1] : "", std::ios::binary);
  const Bytes bytes{std::istreambuf_iterator<char>(file), {}};
  Counts whole, cut, changed;
  offer(bytes.data(), bytes.size(), whole);
  for (std::size_t length = 0; length < bytes.size(); ++length) offer_cut(bytes, length, cut);
  const std::size_t most = words > 2 ? static_cast<std::size_t>(std::atol(arguments[2])) : bytes.size();
  change_each(bytes, 0, std::min(most, bytes.size()), changed);
  std::printf("whole %ld cut %ld of %ld changed %ld of %ld\n", whole.taken, cut.taken, cut.taken + cut.refused,
              changed.taken, changed.taken + changed.refused);
  return whole.taken == 1 && cut.taken == 0 && changed.taken > 0 ? 0 : 1;
}
