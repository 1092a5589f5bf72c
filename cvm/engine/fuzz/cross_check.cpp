// Every instruction set that this build and processor have against the portable one, on random plans: the same bytes.
// cross_check [PLANS] [SEED]. The digest at the end is the same on every machine.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz/random_plan.h"
#include "fuzz/run_plan.h"
#include "isa.h"

namespace cvm::fuzz {
namespace {

// FNV-1a.
class Digest {
 public:
  void add(const std::vector<std::vector<std::uint8_t>>& outputs) {
    for (const auto& output : outputs) {
      for (const std::uint8_t byte : output) state_ = (state_ ^ byte) * 0x100000001B3u;
    }
  }
  unsigned long long value() const { return state_; }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325u;
};

int drive(std::int64_t plans, std::uint64_t seed) {
  const auto& list = subjects();
  const Kernels& portable = *kernels_for("portable");
  Digest digest;
  std::int64_t wrong = 0;
  for (std::int64_t number = 0; number < plans; ++number) {
    const Subject& subject = list[static_cast<std::size_t>(number) % list.size()];
    Random random(seed + static_cast<std::uint64_t>(number));
    const RandomPlan plan = random_plan(random, subject);
    const std::uint64_t values = random.next();
    const Outcome expected = run_plan(plan.spec, portable, values);
    if (!expected.refusal.empty())
      std::printf("plan %lld (%s): %s\n", static_cast<long long>(number), subject.name, expected.refusal.c_str()),
          ++wrong;
    digest.add(expected.outputs);
    for (const std::string_view isa : supported_isas()) {
      if (run_plan(plan.spec, *kernels_for(isa), values).outputs == expected.outputs) continue;
      std::printf("plan %lld (%s): %s differs\n", static_cast<long long>(number), subject.name,
                  std::string(isa).c_str());
      ++wrong;
    }
  }
  std::printf("%lld plans on", static_cast<long long>(plans));
  for (const std::string_view isa : supported_isas()) std::printf(" %s", std::string(isa).c_str());
  std::printf(": %lld wrong; digest %016llx\n", static_cast<long long>(wrong), digest.value());
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace cvm::fuzz

int main(int count, char** arguments) {
  const std::int64_t plans = count > 1 ? std::strtoll(arguments[1], nullptr, 10) : 5000;
  const std::uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  return cvm::fuzz::drive(plans, seed);
}
