// Check a receipt without cvm: node verify.js receipt.json model.cvm.
// Section 7 of cvm/SPEC.md has the rules. Exit code 0 if all agrees, else 1.

const { createHash } = require("node:crypto");
const { readFileSync } = require("node:fs");

const sha = (...parts) => createHash("sha256").update(Buffer.concat(parts.map((part) => Buffer.from(part)))).digest();

// JSON with keys sorted by code point (the order of UTF-8), no white space, and ASCII alone.
const byBytes = (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other));
const ascii = (text) =>
  JSON.stringify(text).replace(/[\x7f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
function compact(value) {
  if (typeof value === "string") return ascii(value);
  if (Number.isSafeInteger(value)) return String(value);
  if (Object(value) !== value) throw new Error(`${value} is beyond the exact integers of JavaScript`);
  if (Array.isArray(value)) throw new Error("a leaf holds no lists");
  return `{${Object.keys(value).sort(byBytes).map((key) => `${ascii(key)}:${compact(value[key])}`)}}`;
}

// Neighbours are hashed together; one without a partner moves up as it is.
function merkleRoot(level) {
  if (level.length === 1) return level[0];
  const pairs = level.flatMap((hash, i) => (i % 2 ? [] : [level.slice(i, i + 2)]));
  return merkleRoot(pairs.map((pair) => (pair.length === 2 ? sha([1], ...pair) : pair[0])));
}

// Where the metadata begins: its mark, and a length that ends the file.
function endOfProgram(file) {
  for (let at = 0; at + 16 <= file.length; at += 64) {
    const marked = file.toString("latin1", at, at + 8) === "CVMMETA\x01";
    if (marked && BigInt(at + 16) + file.readBigUInt64LE(at + 8) === BigInt(file.length)) return at;
  }
  return file.length;
}

const { root, ...receipt } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const file = readFileSync(process.argv[3]);
const leaves = [{ ...receipt, samples: receipt.samples.length }, ...receipt.samples];
const end = endOfProgram(file);
const checks = [
  ["format", receipt.format, "cvm-receipt-2"],
  ["root", root, merkleRoot(leaves.map((leaf) => sha([0], compact(leaf)))).toString("hex")],
  ["program", receipt.program, sha(file.subarray(0, end)).toString("hex")],
];
if ("metadata" in receipt) checks.push(["metadata", receipt.metadata, sha(file.subarray(end)).toString("hex")]);
for (const [what, stated, isSo] of checks) console.log(what, stated, stated === isSo ? "agrees" : `but is ${isSo}`);
process.exitCode = checks.some(([, stated, isSo]) => stated !== isSo) ? 1 : 0;
