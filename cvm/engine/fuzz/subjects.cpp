// The list of subjects.
#include "fuzz/random_plan.h"

namespace cvm::fuzz {

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> kSubjects = [] {
    std::vector<Subject> list;
    add_linear_subjects(list);
    add_other_subjects(list);
    add_stage_subjects(list);
    add_detection_subjects(list);
    return list;
  }();
  return kSubjects;
}

RandomPlan random_plan(Random& random, const Subject& subject) {
  Draft draft(random);
  subject.draw(draft);
  return draft.finish();
}

}  // namespace cvm::fuzz
