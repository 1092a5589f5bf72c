/* $TITLE
   Written by cvm $VERSION; a proven program of integers for a GPU. */
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
   its interval, before anything is computed; or -1 if the GPU failed, and ${NAME}_error() is why. */
int ${NAME}_run(const ${NAME}_inputs *inputs, ${NAME}_outputs *outputs);

/* The same of `count` samples, as many at once as the GPU has memory for. One call at a time: all share its memory. */
int ${NAME}_run_many(const ${NAME}_inputs *inputs, ${NAME}_outputs *outputs, int32_t count);

/* Why the last call returned -1. */
const char *${NAME}_error(void);

/* Gives the memory of the GPU back; the next call takes it again. */
void ${NAME}_close(void);

#ifdef __cplusplus
}
#endif

#endif
