/* $TITLE
   Written by cvm $VERSION; a proven program of integers. */
#ifndef $GUARD
#define $GUARD

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Row-major, and inside the interval that stands beside each. */
typedef struct {
$INPUTS
} ${NAME}_inputs;

typedef struct {
$OUTPUTS
} ${NAME}_outputs;

/* Runs the program on one sample. Returns 0, or the number (from 1) of the first input that holds an integer outside
   its interval; then nothing is computed. All calls share one static arena of $ARENA bytes: one call at a time. */
int ${NAME}_run(const ${NAME}_inputs *inputs, ${NAME}_outputs *outputs);

#ifdef __cplusplus
}
#endif

#endif
