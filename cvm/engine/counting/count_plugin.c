/* A plugin of QEMU that counts instructions. At each system call STEP_ENDS it writes how many were executed since the one
   before. Build: cc -shared -fPIC -O2 count_plugin.c -o count_plugin.so; use: qemu-aarch64 -plugin count_plugin.so,to=FILE.
   What it needs of QEMU is declared here, as qemu-plugin.h has it since version 1: not every package brings that header. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
enum { NO_REGISTERS = 0 };
typedef void (*on_block)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*on_run)(unsigned int cpu, void *data);
typedef void (*on_syscall)(qemu_plugin_id_t id, unsigned int cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                           uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, on_block callback);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, on_run callback, int registers, void *data);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, on_syscall callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { STEP_ENDS = 0x43564D }; /* count_steps.cpp has the same number */

static uint64_t executed;
static FILE *to;

static void ran(unsigned int cpu, void *data) {
  (void)cpu;
  executed += (uintptr_t)data;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_cb(block, ran, NO_REGISTERS, (void *)(uintptr_t)qemu_plugin_tb_n_insns(block));
}

static void called(qemu_plugin_id_t id, unsigned int cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                   uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  (void)id, (void)cpu, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
  if (number != STEP_ENDS) return;
  fprintf(to, "%" PRIu64 "\n", executed);
  fflush(to);
  executed = 0;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int count, char **arguments) {
  (void)info;
  if (count != 1 || strncmp(arguments[0], "to=", 3) != 0 || (to = fopen(arguments[0] + 3, "w")) == NULL) {
    fprintf(stderr, "count_plugin: name one file that can be written, count_plugin.so,to=FILE\n");
    return -1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_vcpu_syscall_cb(id, called);
  return 0;
}
