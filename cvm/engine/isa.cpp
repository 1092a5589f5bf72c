// What the processor can do, asked once.
#include "isa.h"

#if defined(_MSC_VER) && (defined(CVM_HAS_AVX2) || defined(CVM_HAS_AVX512VNNI))
#include <immintrin.h>
#include <intrin.h>
#endif
#if defined(CVM_HAS_AVXVNNI) || defined(CVM_HAS_AMX)
#include <cpuid.h>
#endif
#if defined(CVM_HAS_AMX)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(CVM_HAS_DOTPROD) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(CVM_HAS_DOTPROD) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace cvm {

// One table for each instruction set, from the files named after it.
#define CVM_TABLE(name, Suffix, three_planes)       \
  extern const ElementKernels kElements##Suffix;    \
  extern const ProductKernels kProducts##Suffix;    \
  extern const DepthwiseKernels kDepthwise##Suffix; \
  extern const PoolingKernels kPooling##Suffix;     \
  extern const FinishKernels kFinish##Suffix;       \
  extern const LookupKernels kLookups##Suffix;      \
  const Kernels k##Suffix = {name,                &kElements##Suffix, &kProducts##Suffix, \
                             &kDepthwise##Suffix, &kPooling##Suffix,  &kFinish##Suffix,   &kLookups##Suffix, true, three_planes};
CVM_TABLE("portable", Portable, nullptr)
// AArch64: instruction sets differ in products alone, and compilers make vectors of plain loops for all of them.
#define CVM_NEON_TABLE(name, Suffix)                \
  extern const ProductKernels kProducts##Suffix;    \
  extern const DepthwiseKernels kDepthwise##Suffix; \
  const Kernels k##Suffix = {name, &kElementsNeon, &kProducts##Suffix, &kDepthwise##Suffix, &kPoolingPortable, &kFinishNeon, &kLookupsNeon, false};
#if defined(CVM_HAS_NEON)
extern const ElementKernels kElementsNeon;
extern const FinishKernels kFinishNeon;
const LookupKernels kLookupsNeon = {nullptr, nullptr};  // there, stage follows stage
CVM_NEON_TABLE("neon", Neon)
#endif
#if defined(CVM_HAS_DOTPROD)
CVM_NEON_TABLE("dotprod", Dotprod)
#endif
#if defined(CVM_HAS_I8MM)
CVM_NEON_TABLE("i8mm", I8mm)
#endif
#if defined(CVM_HAS_AVX2)
void three_planes_avx2(const uint8_t* from, int64_t plane, uint8_t* to, int64_t count, uint8_t flip);
CVM_TABLE("avx2", Avx2, three_planes_avx2)
#endif
#if defined(CVM_HAS_AVXVNNI)  // with AVX2 for all but products
extern const ProductKernels kProductsAvxvnni;
extern const DepthwiseKernels kDepthwiseAvxvnni;
const Kernels kAvxvnni = {"avxvnni",    &kElementsAvx2, &kProductsAvxvnni, &kDepthwiseAvxvnni, &kPoolingAvx2,
                          &kFinishAvx2, &kLookupsAvx2,  true,              three_planes_avx2};
#endif
#if defined(CVM_HAS_AVX512VNNI)
CVM_TABLE("avx512vnni", Avx512vnni, three_planes_avx2)
#endif
#if defined(CVM_HAS_AMX)  // with AVX-512 VNNI for all but products of bytes
extern const ProductKernels kProductsAmx;
const Kernels kAmx = {"amx",           &kElementsAvx512vnni, &kProductsAmx,       &kDepthwiseAvx512vnni, &kPoolingAvx512vnni,
                      &kFinishAvx512vnni, &kLookupsAvx512vnni,  true, three_planes_avx2};
#endif
#undef CVM_TABLE
#undef CVM_NEON_TABLE

namespace {

#if defined(_MSC_VER) && (defined(CVM_HAS_AVX2) || defined(CVM_HAS_AVX512VNNI))
// Bits of CPUID leaf 7 (and of leaf 1 and XCR0 for what the operating system saves), as Intel's manual numbers them.
bool has_bits(int leaf, int subleaf, int which, unsigned mask) {
  int registers[4];
  __cpuidex(registers, leaf, subleaf);
  return (static_cast<unsigned>(registers[which]) & mask) == mask;
}
bool saves(unsigned long long mask) { return has_bits(1, 0, 2, 1u << 27) && (_xgetbv(0) & mask) == mask; }
bool has_avx2() { return saves(0x6) && has_bits(7, 0, 1, (1u << 5) | (1u << 8)); }
bool has_avx512vnni() {
  return has_avx2() && saves(0xE6) && has_bits(7, 0, 1, (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31)) &&
         has_bits(7, 0, 2, 1u << 11);
}
#else
#if defined(CVM_HAS_AVX2)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }
#endif
#if defined(CVM_EMULATE_AVXVNNI)
bool has_avxvnni() { return has_avx2(); }
#elif defined(CVM_HAS_AVXVNNI)
// Compilers that can compile it need not know its name: bit 4 of CPUID leaf 7, 1, as Intel's manual numbers them.
bool has_avxvnni() {
  unsigned a, b, c, d;
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
}
#endif
#if defined(CVM_EMULATE_AVX512)
bool has_avx512vnni() { return has_avx2(); }
#elif defined(CVM_HAS_AVX512VNNI)
bool has_avx512vnni() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
#endif
#endif

#if defined(CVM_EMULATE_AMX)
bool has_amx() { return has_avx512vnni(); }
#elif defined(CVM_HAS_AMX)
// Linux saves tile registers for a process that asks for it. Bits of CPUID leaf 7 and of XCR0 as Intel's manual numbers them.
bool has_amx() {
  constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25, kSavedBySystem = 1u << 27, kTileState = 3u << 17;
  constexpr long kAskForPermission = 0x1023, kTileData = 18;
  unsigned a, b, c, d;
  if (!has_avx512vnni() || __get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSavedBySystem) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & (kTile | kInt8)) != (kTile | kInt8)) return false;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState && syscall(SYS_arch_prctl, kAskForPermission, kTileData) == 0;
}
#endif

#if defined(CVM_HAS_DOTPROD)
#if defined(__linux__)
bool has_dotprod() { return (getauxval(AT_HWCAP) & 1u << 20) != 0; }
bool has_i8mm() { return has_dotprod() && (getauxval(AT_HWCAP2) & 1u << 13) != 0; }
#elif defined(__APPLE__)
bool has(const char* feature) {
  int present = 0;
  std::size_t size = sizeof present;
  return sysctlbyname(feature, &present, &size, nullptr, 0) == 0 && present != 0;
}
bool has_dotprod() { return has("hw.optional.arm.FEAT_DotProd"); }
bool has_i8mm() { return has_dotprod() && has("hw.optional.arm.FEAT_I8MM"); }
#else  // no way to ask is known here
bool has_dotprod() { return false; }
bool has_i8mm() { return false; }
#endif
#endif

std::vector<const Kernels*> find_supported() {
  std::vector<const Kernels*> tables{&kPortable};
#if defined(CVM_HAS_NEON)
  tables.push_back(&kNeon);
#endif
#if defined(CVM_HAS_DOTPROD)
  if (has_dotprod()) tables.push_back(&kDotprod);
#endif
#if defined(CVM_HAS_I8MM)
  if (has_i8mm()) tables.push_back(&kI8mm);
#endif
#if defined(CVM_HAS_AVX2)
  if (has_avx2()) tables.push_back(&kAvx2);
#endif
#if defined(CVM_HAS_AVXVNNI)
  if (has_avxvnni()) tables.push_back(&kAvxvnni);
#endif
#if defined(CVM_HAS_AVX512VNNI)
  if (has_avx512vnni()) tables.push_back(&kAvx512vnni);
#endif
#if defined(CVM_HAS_AMX)
  if (has_amx()) tables.push_back(&kAmx);
#endif
  return tables;
}

const std::vector<const Kernels*>& supported() {
  static const std::vector<const Kernels*> kSupported = find_supported();
  return kSupported;
}

}  // namespace

std::vector<std::string_view> supported_isas() {
  std::vector<std::string_view> names;
  for (const Kernels* kernels : supported()) names.emplace_back(kernels->name);
  return names;
}

const Kernels* kernels_for(std::string_view name) {
  if (name.empty()) return supported().back();
  for (const Kernels* kernels : supported()) {
    if (name == kernels->name) return kernels;
  }
  return nullptr;
}

}  // namespace cvm
