/* Answers `cpuid` as a processor that has AVX2 and no more: no AVX-512, no VNNI of any kind, no AMX; with KEEP_AVX_VNNI, AVX-VNNI, too.
 *
 * Loaded before all else (LD_PRELOAD). older.py writes `ud0`, which every processor refuses, in the place of each `cpuid`;
 * the refusal ends here. Asked once at a library's start, it costs a run nothing. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

static const unsigned char UD0[] = {0x0f, 0xff};

struct hidden {
    unsigned leaf, subleaf, eax, ebx, ecx, edx; /* the bits that are cleared */
};

#define BIT(n) (1u << (n))

#ifdef KEEP_AVX_VNNI
#define AVX_VNNI 0u
#else
#define AVX_VNNI BIT(4)
#endif

static const struct hidden HIDDEN[] = {
    {7, 0, 0,
     /* F, DQ, IFMA, PF, ER, CD, BW, VL */
     BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31),
     /* VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ */
     BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14),
     /* 4VNNIW, 4FMAPS, VP2INTERSECT, then BF16, TILE and INT8 of AMX, FP16 between */
     BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25)},
    {7, 1,
     /* AVX-VNNI, AVX512-BF16, AMX-FP16, AVX-IFMA */
     AVX_VNNI | BIT(5) | BIT(21) | BIT(23), 0, 0,
     /* AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10 */
     BIT(4) | BIT(5) | BIT(8) | BIT(10) | BIT(19)},
    /* the registers that the system keeps: masks, the upper halves, 16 more, then tiles */
    {13, 0, BIT(5) | BIT(6) | BIT(7) | BIT(17) | BIT(18), 0, 0, 0},
    {29, 0, ~0u, ~0u, ~0u, ~0u}, /* tiles */
    {30, 0, ~0u, ~0u, ~0u, ~0u},
    {36, 0, ~0u, ~0u, ~0u, ~0u}, /* AVX10 */
};

static void ask(unsigned leaf, unsigned subleaf, unsigned said[4]) {
    __cpuid_count(leaf, subleaf, said[0], said[1], said[2], said[3]);
    for (size_t i = 0; i < sizeof HIDDEN / sizeof *HIDDEN; ++i) {
        const struct hidden *it = &HIDDEN[i];
        if (it->leaf != leaf || it->subleaf != subleaf) continue;
        said[0] &= ~it->eax, said[1] &= ~it->ebx, said[2] &= ~it->ecx, said[3] &= ~it->edx;
    }
}

static void refused(int number, siginfo_t *info, void *context) {
    greg_t *at = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)at[REG_RIP];
    (void)info;
    if (code[0] != UD0[0] || code[1] != UD0[1]) {
        signal(number, SIG_DFL); /* not ours: it is refused once more, and ends the process */
        return;
    }
    unsigned said[4];
    ask((unsigned)at[REG_RAX], (unsigned)at[REG_RCX], said);
    at[REG_RAX] = said[0], at[REG_RBX] = said[1], at[REG_RCX] = said[2], at[REG_RDX] = said[3];
    at[REG_RIP] += sizeof UD0;
}

__attribute__((constructor)) static void listen(void) {
    struct sigaction action = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
}

/* Returns what AVX-512 has left in this thread's registers, 0 for nothing: bits 5 to 7 of XINUSE, or 0 where the processor does not tell. */
unsigned avx512_in_use(void) {
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid_count(13, 1, &eax, &ebx, &ecx, &edx) || !(eax & BIT(2))) return 0;
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(1));
    return eax & (BIT(5) | BIT(6) | BIT(7));
}
