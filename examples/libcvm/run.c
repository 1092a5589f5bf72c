/* Runs a plan of one input and one output: run P.plan sample.bin >answer.bin */
#include <cvm.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
  cvm_error error = {"run P.plan sample.bin >answer.bin"};
  cvm_plan *plan = count == 3 ? cvm_open(words[1], 0, &error) : NULL;
  if (!plan) return fprintf(stderr, "%s\n", error.text), 1;
  const cvm_port *in = cvm_input(plan, 0), *out = cvm_output(plan, 0);
  void *sample = malloc((size_t)in->bytes), *answer = malloc((size_t)out->bytes);
  FILE *file = fopen(words[2], "rb");
  if (!file || !fread(sample, (size_t)in->bytes, 1, file)) return fprintf(stderr, "%s is too short\n", words[2]), 1;
  if (cvm_run(plan, (const void *const *)&sample, &answer, 1, &error)) return fprintf(stderr, "%s\n", error.text), 1;
  fwrite(answer, (size_t)out->bytes, 1, stdout);
  return fclose(file), free(sample), free(answer), cvm_free(plan), 0;
}
