// Check a receipt without cvm, by sections 6 and 7 of cvm/SPEC.md: node verify.js receipt.json model.cvm
const [assert, { createHash }, { readFileSync }] = ["assert", "crypto", "fs"].map((name) => require(`node:${name}`));
const [text, file] = process.argv.slice(2).map((path) => readFileSync(path));
const exact = (_, value) => (assert(typeof value !== "number" || Number.isSafeInteger(value), "may be rounded"), value);
const receipt = JSON.parse(text, exact);
const sha = (...parts) => createHash("sha256").update(Buffer.concat(parts)).digest("hex");

// JSON in ASCII with keys sorted by code point, which is the order of UTF-8.
const byCodePoint = (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other));
const escape = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
const scalar = (value) => JSON.stringify(value).replace(/[\x7f-\uffff]/g, escape);
const entries = (map) => Object.keys(map).sort(byCodePoint).map((key) => `${scalar(key)}:${json(map[key])}`);
const json = (value) => (Object(value) === value ? `{${entries(value)}}` : scalar(value));

// A leaf for the header, with the number of samples in their place, and one for each sample.
const { root, backend, ...header } = { ...receipt, samples: receipt.samples.length };
let hashes = [header, ...receipt.samples].map((leaf) => sha(Buffer.of(0), Buffer.from(json(leaf))));

// The root: neighbours are hashed together; one without a partner moves up as it is.
const join = (one, other) => (other ? sha(Buffer.of(1), Buffer.from(one + other, "hex")) : one);
while (hashes[1]) hashes = hashes.flatMap((hash, i) => (i % 2 ? [] : join(hash, hashes[i + 1])));

// The program ends where the metadata begins: with its mark, and a length that ends the file.
const rest = (at) => (file.toString("latin1", at, at + 8) === "CVMMETA\x01" ? file.readBigUInt64LE(at + 8) : -17n);
for (var end = 0; end < file.length && BigInt(end + 16) + rest(end) !== BigInt(file.length); ) end += 64;

const found = { format: "cvm-receipt-2", root: hashes[0], program: sha(file.subarray(0, end)) };
if ("metadata" in receipt) found.metadata = sha(file.subarray(end));
for (const name in found) console.log(name, receipt[name], receipt[name] === found[name] ? "agrees" : `but is ${found[name]}`);
process.exitCode = Number(Object.keys(found).some((name) => receipt[name] !== found[name]));
