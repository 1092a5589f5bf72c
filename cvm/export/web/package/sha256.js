// SHA-256 (FIPS 180-4), written out since browsers offer theirs neither to every page nor at once.

const START = "6a09e667 bb67ae85 3c6ef372 a54ff53a 510e527f 9b05688c 1f83d9ab 5be0cd19";
const ROUNDS = `
428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5 d807aa98 12835b01 243185be 550c7dc3 72be5d74
80deb1fe 9bdc06a7 c19bf174 e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da 983e5152 a831c66d
b00327c8 bf597fc7 c6e00bf3 d5a79147 06ca6351 14292967 27b70a85 2e1b2138 4d2c6dfc 53380d13 650a7354 766a0abb 81c2c92e
92722c85 a2bfe8a1 a81a664b c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070 19a4c116 1e376c08 2748774c 34b0bcb5
391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3 748f82ee 78a5636f 84c87814 8cc70208 90befffa a4506ceb bef9a3f7 c67178f2`;
const words = (text) => text.trim().split(/\s+/).map((word) => parseInt(word, 16) | 0);
const CONSTANTS = Int32Array.from(words(ROUNDS));

const rotated = (x, count) => (x >>> count) | (x << (32 - count));

function compress(state, w) {
  for (let t = 16; t < 64; t++) {
    const x = w[t - 15];
    const y = w[t - 2];
    const small = rotated(x, 7) ^ rotated(x, 18) ^ (x >>> 3);
    const large = rotated(y, 17) ^ rotated(y, 19) ^ (y >>> 10);
    w[t] = w[t - 16] + small + w[t - 7] + large;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let t = 0; t < 64; t++) {
    const high = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const first = (h + high + ((e & f) ^ (~e & g)) + CONSTANTS[t] + w[t]) | 0;
    const low = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const second = (low + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((value, k) => (state[k] += value));
}

// The digest of some bytes, as bytes.
export function sha256(...parts) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const padded = new Uint8Array(64 * Math.ceil((length + 9) / 64));
  let place = 0;
  for (const part of parts) {
    padded.set(part, place);
    place += part.length;
  }
  padded[length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, 8n * BigInt(length));
  const state = Int32Array.from(words(START));
  const schedule = new Int32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let t = 0; t < 16; t++) schedule[t] = view.getInt32(block + 4 * t);
    compress(state, schedule);
  }
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, k) => digest.setInt32(4 * k, word));
  return new Uint8Array(digest.buffer);
}

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
