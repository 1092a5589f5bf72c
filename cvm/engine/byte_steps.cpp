// Cuts weights into byte steps, and finds pairs of them that fit 16 bits together.
#include "byte_steps.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace cvm {
namespace {

constexpr std::int64_t kStep = 4;

// The sums of a step's pairs: of the positive and of the negative weights, for both pairs of each column.
struct Load {
  std::int64_t step;  // its place in the list
  int greatest;
  std::vector<std::uint8_t> sums;
};

// Takes from a pair what exceeds the limit, from the second weight first, and adds it to `rest`.
void clip_pair(std::int8_t* pair, std::int8_t* rest) {
  if (std::abs(pair[0]) + std::abs(pair[1]) <= kMostOfPair) return;  // nearly always
  for (const int sign : {1, -1}) {
    const int first = std::max(sign * pair[0], 0), second = std::max(sign * pair[1], 0);
    const int excess = std::max(first + second - kMostOfPair, 0), of_second = std::min(excess, second);
    for (const auto& [place, amount] : {std::pair{1, of_second}, std::pair{0, excess - of_second}}) {
      pair[place] = static_cast<std::int8_t>(pair[place] - sign * amount);
      rest[place] = static_cast<std::int8_t>(rest[place] + sign * amount);
    }
  }
}

// The steps in the order of depth, each followed by its excess if it has one.
ByteSteps in_order(std::span<const std::int8_t* const> columns, std::int64_t depth) {
  ByteSteps steps;
  const std::size_t size = columns.size() * kStep;
  std::vector<std::int8_t> rest(size);
  for (std::int64_t k = 0; k < depth; k += kStep) {
    const std::size_t begin = steps.weights.size();
    steps.weights.resize(begin + size);
    std::fill(rest.begin(), rest.end(), std::int8_t{0});
    for (std::size_t column = 0; column < columns.size(); ++column) {
      if (columns[column] == nullptr) continue;
      std::int8_t* to = steps.weights.data() + begin + column * kStep;
      std::copy_n(columns[column] + k, std::min(kStep, depth - k), to);
      clip_pair(to, rest.data() + column * kStep);
      clip_pair(to + 2, rest.data() + column * kStep + 2);
    }
    steps.offsets.push_back(static_cast<std::int32_t>(k));
    if (std::all_of(rest.begin(), rest.end(), [](std::int8_t weight) { return weight == 0; })) continue;
    steps.offsets.push_back(static_cast<std::int32_t>(k));
    steps.weights.insert(steps.weights.end(), rest.begin(), rest.end());
  }
  return steps;
}

Load load_of(const ByteSteps& steps, std::int64_t step, std::size_t size) {
  Load load{step, 0, std::vector<std::uint8_t>(size)};
  const std::int8_t* from = steps.weights.data() + static_cast<std::size_t>(step) * size;
  for (std::size_t i = 0; i < size; i += 2) {
    const int positive = std::max<int>(from[i], 0) + std::max<int>(from[i + 1], 0);
    const int negative = std::max<int>(-from[i], 0) + std::max<int>(-from[i + 1], 0);
    load.sums[i] = static_cast<std::uint8_t>(positive);
    load.sums[i + 1] = static_cast<std::uint8_t>(negative);
    load.greatest = std::max({load.greatest, positive, negative});
  }
  return load;
}

bool fit_together(const Load& a, const Load& b) {
  for (std::size_t i = 0; i < a.sums.size(); ++i) {
    if (a.sums[i] + b.sums[i] > kMostOfPair) return false;
  }
  return true;
}

// Twos of steps that fit together, and those that are left alone, both in the order of depth, in which rows are read best.
struct Pairs {
  std::vector<std::pair<std::int64_t, std::int64_t>> twos;
  std::vector<std::int64_t> ones;
};

// Takes the heaviest step first, and pairs each with the heaviest of those before it that is still alone and fits:
// light steps find another one easily, so they come last.
Pairs pairs_of(std::vector<Load> loads) {
  constexpr std::ptrdiff_t kTries = 128;  // or the time to pack would grow with the square of depth
  std::stable_sort(loads.begin(), loads.end(), [](const Load& a, const Load& b) { return a.greatest > b.greatest; });
  Pairs pairs;
  std::vector<const Load*> alone;
  for (const Load& load : loads) {
    const auto end = alone.begin() + std::min(std::ssize(alone), kTries);
    const auto partner = std::find_if(alone.begin(), end, [&](const Load* heavier) { return fit_together(*heavier, load); });
    if (partner == end) {
      alone.push_back(&load);
    } else {
      pairs.twos.push_back(std::minmax((*partner)->step, load.step));
      alone.erase(partner);
    }
  }
  for (const Load* load : alone) pairs.ones.push_back(load->step);
  std::sort(pairs.twos.begin(), pairs.twos.end());
  std::sort(pairs.ones.begin(), pairs.ones.end());
  return pairs;
}

// The steps again, twos first.
ByteSteps in_pairs(const ByteSteps& steps, std::size_t size) {
  std::vector<Load> loads;
  for (std::size_t i = 0; i < steps.offsets.size(); ++i) loads.push_back(load_of(steps, static_cast<std::int64_t>(i), size));
  const Pairs pairs = pairs_of(std::move(loads));
  ByteSteps paired;
  const auto add = [&](std::int64_t step) {
    const auto place = static_cast<std::size_t>(step);
    paired.offsets.push_back(steps.offsets[place]);
    const auto from = steps.weights.begin() + static_cast<std::ptrdiff_t>(place * size);
    paired.weights.insert(paired.weights.end(), from, from + static_cast<std::ptrdiff_t>(size));
  };
  paired.doubles = std::ssize(pairs.twos);
  for (const auto& [first, second] : pairs.twos) add(first), add(second);
  for (const std::int64_t step : pairs.ones) add(step);
  return paired;
}

}  // namespace

ByteSteps byte_steps(std::span<const std::int8_t* const> columns, std::int64_t depth) {
  return in_pairs(in_order(columns, depth), columns.size() * kStep);
}

}  // namespace cvm
