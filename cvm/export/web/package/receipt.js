// Receipts of format cvm-receipt-2: digests of a program, its inputs and its outputs (section 7 of cvm's specification).
import { DTYPES, toBytes } from "./tensors.js";
import { hex, sha256 } from "./sha256.js";

const KEYS = ["backend", "cost_weights", "format", "metadata", "program", "root", "samples"];
const FORMATS = ["cvm-receipt-1", "cvm-receipt-2"];
const encoder = new TextEncoder();

export function digestOf(tensor) {
  const head = new DataView(new ArrayBuffer(2 + 8 * tensor.shape.length));
  head.setUint8(0, DTYPES[tensor.dtype].code);
  head.setUint8(1, tensor.shape.length);
  tensor.shape.forEach((size, k) => head.setBigUint64(2 + 8 * k, BigInt(size), true));
  return hex(sha256(new Uint8Array(head.buffer), toBytes(tensor)));
}

// JSON in ASCII with keys sorted by code point: compact, or with an indent of one space.
const ascii = (text) =>
  JSON.stringify(text).replace(/[\x7f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

function byCodePoint(one, other) {
  const [a, b] = [[...one], [...other]].map((text) => text.map((c) => c.codePointAt(0)));
  const k = a.findIndex((point, i) => point !== b[i]);
  return k < 0 ? a.length - b.length : a[k] - (b[k] ?? -1);
}

function written(value, newline, colon) {
  if (typeof value === "string") return ascii(value);
  if (typeof value === "number") {
    if (Number.isSafeInteger(value) && value >= 0) return String(value);
    throw new RangeError(`${value} is beyond the exact integers of JavaScript`);
  }
  if (Object(value) !== value) throw new TypeError(`a receipt holds no ${value}`);
  const inner = newline && `${newline} `;
  const items = Array.isArray(value)
    ? value.map((item) => written(item, inner, colon))
    : Object.keys(value)
        .sort(byCodePoint)
        .map((key) => ascii(key) + colon + written(value[key], inner, colon));
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return items.length ? open + inner + items.join(`,${inner}`) + newline + close : open + close;
}

// The one text of a receipt, as cvm writes its file.
export const receiptText = (receipt) => `${written(receipt, "\n", ": ")}\n`;

// Neighbours are hashed together; one without a partner moves up as it is.
function merkleRoot(level) {
  if (!level.length) return sha256();
  while (level.length > 1) {
    const pairs = level.flatMap((_, i) => (i % 2 ? [] : [level.slice(i, i + 2)]));
    level = pairs.map((pair) => (pair.length === 2 ? sha256(Uint8Array.of(1), ...pair) : pair[0]));
  }
  return level[0];
}

// The root of what a receipt holds, but for the back end that made it; in version 1 it is over the samples alone.
export function rootOf({ root, backend, ...receipt }) {
  const header = { ...receipt, samples: receipt.samples.length };
  const leaves = receipt.format === FORMATS[0] ? receipt.samples : [header, ...receipt.samples];
  const hashes = leaves.map((leaf) => sha256(Uint8Array.of(0), encoder.encode(written(leaf, "", ":"))));
  return hex(merkleRoot(hashes));
}

// `metadata`: its digest, if real values went through it.
export function receiptOf({ program, cost_weights }, metadata, samples) {
  const receipt = { format: FORMATS[1], program, cost_weights, ...(metadata && { metadata }), samples };
  return { ...receipt, root: rootOf(receipt) };
}

// Read a receipt that was made elsewhere.
export function readReceipt(text) {
  let receipt;
  try {
    receipt = JSON.parse(text);
  } catch (problem) {
    throw new TypeError(`no receipt: ${problem.message}`);
  }
  if (!FORMATS.includes(receipt?.format)) throw new TypeError(`no receipt: its format is none of ${FORMATS.join(", ")}`);
  const unknown = Object.keys(receipt).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) throw new TypeError(`the receipt has the unknown key '${unknown}'`);
  const missing = KEYS.find((key) => !["backend", "metadata"].includes(key) && !(key in receipt));
  if (missing) throw new TypeError(`the receipt lacks '${missing}'`);
  if (!Array.isArray(receipt.samples)) throw new TypeError("'samples' of the receipt is no list");
  return receipt;
}

// The first entry in which a receipt differs from what was found here: { what, expected, found }, or null.
// `metadata`: the digest of the program's own, or "none".
export function firstMismatch(stated, found, metadata) {
  const used = stated.format === FORMATS[0] ? found.metadata : metadata;
  const top = [
    ["the program", stated.program, found.program],
    ["the metadata", stated.metadata && used ? stated.metadata : null, stated.metadata && used ? used : null],
    ["the version of the cost weights", stated.cost_weights, found.cost_weights],
    ["the number of samples", stated.samples.length, found.samples.length],
  ];
  const each = () => found.samples.flatMap((sample, i) => sampleEntries(i, stated.samples[i], sample));
  const root = () => [["the root", stated.root, rootOf(stated)]];
  for (const entries of [() => top, each, root]) {
    const different = entries().find(([, one, other]) => one !== other);
    if (different) return { what: different[0], expected: different[1] ?? "nothing", found: different[2] ?? "nothing" };
  }
  return null;
}

function sampleEntries(number, stated, found) {
  const ports = ["inputs", "outputs"].flatMap((kind) => {
    const [one, other] = [stated?.[kind] ?? {}, found[kind]];
    const names = new Set([...Object.keys(other), ...Object.keys(one).sort(byCodePoint)]);
    const what = `sample ${number}, ${kind.slice(0, -1)}`;
    return [...names].map((name) => [`${what} '${name}'`, one[name], other[name]]);
  });
  const counted = stated?.clipped !== undefined && found.clipped !== undefined;
  return [
    ...ports,
    ...(counted ? [[`sample ${number}, number of clipped values`, stated.clipped, found.clipped]] : []),
    [`sample ${number}, cost`, stated?.cost, found.cost],
  ];
}
