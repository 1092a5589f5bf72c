/* What JavaScript calls: where each input and output lies, and one run. */
#include "$NAME.h"

static ${NAME}_inputs inputs;
static ${NAME}_outputs outputs;

void *cvm_input(int32_t number);
void *cvm_output(int32_t number);
int32_t cvm_run(void);

void *cvm_input(int32_t number)
{
  switch (number) {
$INPUTS
  }
  return 0;
}

void *cvm_output(int32_t number)
{
  switch (number) {
$OUTPUTS
  }
  return 0;
}

int32_t cvm_run(void)
{
  return ${NAME}_run(&inputs, &outputs);
}
