// Random plans through the door, most of them wrong somewhere: refused, or run without harm. Built with sanitizers;
// with clang's -fsanitize=fuzzer and -DCVM_LIBFUZZER a target for it, else a program: plans_fuzzer [PLANS] [SEED]
// [SUBJECT].
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fuzz/random_plan.h"
#include "fuzz/run_plan.h"
#include "isa.h"

namespace cvm::fuzz {
namespace {

struct Tally {
  std::int64_t right = 0, taken = 0;        // plans left as they were drawn, and those of them that were taken
  std::int64_t wrong = 0, wrong_taken = 0;  // plans that were changed
  Problem refusal;                          // of one that should have been taken
};

// One plan; what became of it.
void play(Random& random, const Subject& subject, bool change, Tally& tally) {
  RandomPlan plan = random_plan(random, subject);
  if (change) mutate(random, plan);
  const Kernels* kernels = kernels_for(random.pick(supported_isas()));
  const Outcome outcome = run_plan(plan.spec, *kernels, random.next());
  ++(change ? tally.wrong : tally.right);
  (change ? tally.wrong_taken : tally.taken) += outcome.refusal.empty() ? 1 : 0;
  if (!change && !outcome.refusal.empty()) tally.refusal = outcome.refusal;
}

#if !defined(CVM_LIBFUZZER)

constexpr double kLongest = 20;           // seconds for one plan
constexpr std::int64_t kJudged = 40;      // plans of a subject before its shares mean something
constexpr std::int64_t kWrongTaken = 50;  // one in so many changed plans must be harmless, or makers are not reached

bool print(const Subject& subject, const Tally& tally) {
  const bool reached =
      tally.right < kJudged || (tally.taken == tally.right && tally.wrong_taken * kWrongTaken >= tally.wrong);
  std::printf("%-30s drawn %6lld taken %6lld   changed %6lld taken %6lld%s\n", subject.name,
              static_cast<long long>(tally.right), static_cast<long long>(tally.taken),
              static_cast<long long>(tally.wrong), static_cast<long long>(tally.wrong_taken),
              reached ? "" : "   NOT REACHED");
  if (!tally.refusal.empty()) std::printf("    refused: %s\n", tally.refusal.c_str());
  return reached;
}

int drive(std::int64_t plans, std::uint64_t seed, const char* only) {
  const auto& list = subjects();
  std::vector<Tally> tallies(list.size());
  double slowest = 0;
  for (std::int64_t number = 0; number < plans; ++number) {
    const auto which = static_cast<std::size_t>(number) % list.size();
    if (only != nullptr && std::strcmp(only, list[which].name) != 0) continue;
    Random random(seed + static_cast<std::uint64_t>(number));
    const auto start = std::chrono::steady_clock::now();
    play(random, list[which], !random.one_in(4), tallies[which]);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (elapsed.count() > slowest) slowest = elapsed.count();
    if (elapsed.count() > kLongest)
      std::printf("plan %lld of %s took %.1f s\n", static_cast<long long>(number), list[which].name, elapsed.count());
  }
  bool ok = slowest <= kLongest;
  for (std::size_t which = 0; which < list.size(); ++which) ok = print(list[which], tallies[which]) && ok;
  std::printf("slowest plan %.3f s\n", slowest);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif

}  // namespace
}  // namespace cvm::fuzz

// What a small plan never needs.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:detect_stack_use_after_return=0";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cvm::fuzz::Random random(std::span<const std::uint8_t>(data, size));
  cvm::fuzz::Tally tally;
  cvm::fuzz::play(random, random.pick(cvm::fuzz::subjects()), true, tally);
  return 0;
}

#if !defined(CVM_LIBFUZZER)
int main(int count, char** arguments) {
  const std::int64_t plans = count > 1 ? std::strtoll(arguments[1], nullptr, 10) : 20000;
  const std::uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  return cvm::fuzz::drive(plans, seed, count > 3 ? arguments[3] : nullptr);
}
#endif
