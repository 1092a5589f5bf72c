/* $TITLE
   Written by cvm $VERSION. C99; no floating point, no C library, no memory but what is declared here. */
#include "$NAME.h"

$BODY

int ${NAME}_run(const ${NAME}_inputs *inputs, ${NAME}_outputs *outputs)
{
$RUN
  return 0;
}
