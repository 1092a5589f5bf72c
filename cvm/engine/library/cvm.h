/* libcvm: runs the plan files that `cvm plan P.cvm -o P.plan` writes, without Python. C99 and newer, C++ and the foreign
   functions of other languages. docs/how_to/libcvm.md has examples. */
#ifndef CVM_H
#define CVM_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(CVM_SHARED)
#ifdef CVM_BUILDING
#define CVM_API __declspec(dllexport)
#else
#define CVM_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define CVM_API __attribute__((visibility("default")))
#else
#define CVM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { CVM_BOOL = 0, CVM_I8 = 1, CVM_U8 = 2, CVM_I16 = 3, CVM_I32 = 4 }; /* dtypes; a bool is a byte 0 or 1 */
enum { CVM_MAX_RANK = 6, CVM_MAX_THREADS = 256 };

/* A program, packed for this processor. It never changes: several threads may run it at once. */
typedef struct cvm_plan cvm_plan;

/* An input or an output. It lives as long as its plan. */
typedef struct {
  const char *name; /* UTF-8 */
  int32_t dtype, rank;
  int64_t shape[CVM_MAX_RANK];
  int64_t bytes;  /* of the array: dense, row-major, in the processor's byte order */
  int32_t lo, hi; /* an integer of an input outside lo..hi is refused; every integer of an output lies inside */
} cvm_port;

/* One sentence: what was found, and what was expected. Empty if all is well. */
typedef struct {
  char text[512];
} cvm_error;

/* The version of this library. It takes only plan files that `cvm` of the same version wrote. */
CVM_API const char *cvm_version(void);

/* A plan from a file, or from bytes that may go away afterwards. NULL if it is refused; `error`, which may be NULL, then
   has the reason. `max_memory` is the most bytes that the values of one run may take; 0 sets no limit. Any bytes may be
   given: what is no plan is refused, and no plan reads or writes outside its own memory. */
CVM_API cvm_plan *cvm_open(const char *path, int64_t max_memory, cvm_error *error);
CVM_API cvm_plan *cvm_open_bytes(const void *bytes, size_t count, int64_t max_memory, cvm_error *error);

/* Gives the memory back. NULL is allowed. */
CVM_API void cvm_free(cvm_plan *plan);

/* The program's id in hexadecimal, as `cvm digest` prints it: what the plan was made of, if its maker is to be believed. */
CVM_API const char *cvm_program_id(const cvm_plan *plan);

CVM_API size_t cvm_inputs(const cvm_plan *plan);
CVM_API size_t cvm_outputs(const cvm_plan *plan);
/* NULL if there are not so many. */
CVM_API const cvm_port *cvm_input(const cvm_plan *plan, size_t number);
CVM_API const cvm_port *cvm_output(const cvm_plan *plan, size_t number);

/* One sample: the address of an array for each input, read only, and for each output, of the sizes that the ports state
   and aligned as their dtype. No output overlaps another array. `threads` is 1 to 256; the answer is the same for any.
   0 if it ran; else nothing was written, and `error`, which may be NULL, has the reason. */
CVM_API int cvm_run(const cvm_plan *plan, const void *const *inputs, void *const *outputs, int threads, cvm_error *error);

#ifdef __cplusplus
}
#endif
#endif
