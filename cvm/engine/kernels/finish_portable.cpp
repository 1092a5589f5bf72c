// Plain C++ has no kernels that finish tiles: the chain, stage by stage, is what others are compared with.
#include "kernels/finish.h"

namespace cvm {

extern const FinishKernels kFinishPortable;
const FinishKernels kFinishPortable = {nullptr, nullptr};

}  // namespace cvm
