/* The constants of $TITLE, which the assembler takes from a file beside this one. */
__asm__(
  ".section .rodata\n"
  ".balign 64\n"
  ".globl ${NAME}_constants\n"
  "${NAME}_constants:\n"
  ".incbin \"$NAME.constants\"\n"
  ".text\n");
