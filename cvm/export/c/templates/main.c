/* Runs the program on integers from a fixed sequence and compares the SHA-256 of each output, as cvm writes it in a
   receipt, with what the reference machine answered when this file was written. */
#include <stdio.h>
#include <string.h>

#include "$NAME.h"

static ${NAME}_inputs inputs;
static ${NAME}_outputs outputs;

/* A number below `span`, 1 to 2^32, that depends on the place alone. */
static int64_t below(uint32_t place, uint64_t span)
{
  uint32_t x = place;
  x = (uint32_t)((uint64_t)(x ^ (x >> 16)) * UINT32_C(0x7feb352d));
  x = (uint32_t)((uint64_t)(x ^ (x >> 15)) * UINT32_C(0x846ca68b));
  x ^= x >> 16;
  return (int64_t)((span * x) >> 32);
}

typedef struct {
  uint32_t state[8];
  uint8_t block[64];
  uint32_t used;
  uint64_t length;
} sha256;

static uint32_t rotated(uint32_t x, int count)
{
  return (x << (32 - count)) | (x >> count);
}

static const uint32_t rounds[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static void compress(sha256 *hash)
{
  uint32_t w[64], s[8];
  for (int t = 0; t < 16; t++) {
    w[t] = 0;
    for (int k = 0; k < 4; k++) w[t] = (w[t] << 8) | hash->block[4 * t + k];
  }
  for (int t = 16; t < 64; t++) {
    const uint32_t a = w[t - 15], b = w[t - 2];
    const uint32_t small = rotated(a, 7) ^ rotated(a, 18) ^ (a >> 3);
    const uint32_t large = rotated(b, 17) ^ rotated(b, 19) ^ (b >> 10);
    w[t] = w[t - 16] + small + w[t - 7] + large;
  }
  memcpy(s, hash->state, sizeof s);
  for (int t = 0; t < 64; t++) {
    const uint32_t high = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25);
    const uint32_t low = rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22);
    const uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    const uint32_t first = s[7] + high + choice + rounds[t] + w[t];
    memmove(s + 1, s, 7 * sizeof s[0]);
    s[4] += first;
    s[0] = first + low + majority;
  }
  for (int k = 0; k < 8; k++) hash->state[k] += s[k];
  hash->used = 0;
}

static void add_byte(sha256 *hash, uint8_t byte)
{
  hash->block[hash->used++] = byte;
  hash->length++;
  if (hash->used == 64) compress(hash);
}

static void begin(sha256 *hash, const uint8_t *head, int count)
{
  static const uint32_t start[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
  };
  memset(hash, 0, sizeof *hash);
  memcpy(hash->state, start, sizeof start);
  for (int i = 0; i < count; i++) add_byte(hash, head[i]);
}

/* Little-endian, two's complement. */
static void add_integer(sha256 *hash, int32_t value, int bytes)
{
  for (int k = 0; k < bytes; k++) add_byte(hash, (uint8_t)(((uint32_t)value >> (8 * k)) & 255));
}

static int compare(sha256 *hash, const char *name, const char *expected)
{
  const uint64_t bits = 8 * hash->length;
  char text[65];
  int same;
  add_byte(hash, 0x80);
  while (hash->used != 56) add_byte(hash, 0);
  for (int k = 7; k >= 0; k--) add_byte(hash, (uint8_t)((bits >> (8 * k)) & 255));
  for (int k = 0; k < 8; k++) sprintf(text + 8 * k, "%08lx", (unsigned long)hash->state[k]);
  same = strcmp(text, expected) == 0;
  printf("%s %s %s\n", name, text, same ? "match" : "mismatch");
  return same;
}

int main(void)
{
  sha256 hash;
  int same = 1;
$FILL
  {
    const int refused = ${NAME}_run(&inputs, &outputs);
    if (refused != 0) {
      printf("refused: %s\n", $REASON);
      return 1;
    }
  }
$COMPARE
  return same ? 0 : 1;
}
