/* The start of a Cortex-M3 or newer: the vectors, the data that begins with values, and main with semihosting. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
extern uint8_t data_from[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
extern void initialise_monitor_handles(void);
int main(void);
void reset(void);
void stop(void);
void _init(void);
void _fini(void);
void _init(void) {}
void _fini(void) {}
void reset(void)
{
  memcpy(data_start, data_from, (size_t)(data_end - data_start));
  memset(bss_start, 0, (size_t)(bss_end - bss_start));
  initialise_monitor_handles();
  exit(main());
}
void stop(void)
{
  abort();
}
__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
  stack_top, (void *)reset, (void *)stop, (void *)stop, (void *)stop, (void *)stop, (void *)stop
};
