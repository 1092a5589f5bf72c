// Random plans that the engine takes, for each instruction; and what makes them wrong.
#pragma once

#include <cstddef>
#include <vector>

#include "fuzz/draft.h"

namespace cvm::fuzz {

// An instruction, or one of the bodies that it may get.
struct Subject {
  const char* name;
  void (*draw)(Draft& draft);
};

const std::vector<Subject>& subjects();

// A plan about this subject that the engine has to take.
RandomPlan random_plan(Random& random, const Subject& subject);

// Changes a few fields, to what a careless or hostile caller might hand over. Constants still have the data they
// declare.
void mutate(Random& random, RandomPlan& plan);

// Steps (linear.cpp's and the others) and chains, each in its own file.
void add_linear_subjects(std::vector<Subject>& list);
void add_other_subjects(std::vector<Subject>& list);
void add_stage_subjects(std::vector<Subject>& list);
void add_detection_subjects(std::vector<Subject>& list);

// Stages after the accumulator of a linear step, and the result that they lead to.
void draw_epilogue(Draft& draft, const Shape& shape);
// The same of sums that pass to the next step, and of that step, which adds them to its own.
void draw_passed_sums(Draft& draft, const Shape& shape);
void draw_sum_with_passed(Draft& draft, const Shape& shape);

}  // namespace cvm::fuzz
