// Check a receipt without cvm, by sections 6 and 7 of cvm/SPEC.md: node verify.js receipt.json model.cvm
const { createHash } = require("node:crypto");
const { readFileSync } = require("node:fs");

const receipt = JSON.parse(readFileSync(process.argv[2], "utf8"));
const file = readFileSync(process.argv[3]);
const sha = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();

// JSON in ASCII with keys sorted by code point, which is the order of UTF-8.
const byCodePoint = (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other));
const escape = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
function json(value) {
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new Error(`${value} may be rounded`);
  if (Object(value) !== value) return JSON.stringify(value).replace(/[\x7f-\uffff]/g, escape);
  return `{${Object.keys(value).sort(byCodePoint).map((key) => `${json(key)}:${json(value[key])}`)}}`;
}

// A leaf for the header, with the number of samples in their place, and one for each sample.
const { root, backend, ...header } = { ...receipt, samples: receipt.samples.length };
let hashes = [header, ...receipt.samples].map((leaf) => sha(Buffer.of(0), json(leaf)));

// The root: neighbours are hashed together; one without a partner moves up as it is.
const above = (hash, i) => (i % 2 ? [] : hashes[i + 1] ? [sha(Buffer.of(1), hash, hashes[i + 1])] : [hash]);
while (hashes.length > 1) hashes = hashes.flatMap(above);

// The program ends where the metadata begins: with its mark, and a length that ends the file.
let end = 0;
const isMetadata = (part) =>
  part.toString("latin1", 0, 8) === "CVMMETA\x01" && part.readBigUInt64LE(8) + 16n === BigInt(part.length);
while (end < file.length && !isMetadata(file.subarray(end))) end += 64;

const hex = (hash) => hash.toString("hex");
const found = { format: "cvm-receipt-2", root: hex(hashes[0]), program: hex(sha(file.subarray(0, end))) };
if ("metadata" in receipt) found.metadata = hex(sha(file.subarray(end)));
for (const [name, value] of Object.entries(found)) {
  if (receipt[name] !== value) process.exitCode = 1;
  console.log(name, receipt[name], receipt[name] === value ? "agrees" : `but is ${value}`);
}
