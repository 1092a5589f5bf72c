// Depthwise convolutions with several outputs for each channel.
#pragma once

#include "linear.h"

namespace cvm {

Made make_depthwise_multiplied(const StepCall& call, const ConvGeometry& geometry);

}  // namespace cvm
