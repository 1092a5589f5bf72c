// Files that people drop: .npy and .json as arrays, and .npy to take away.
import { elements } from "./tensors.js";

const MAGIC = "\x93NUMPY";
const READERS = {
  b1: ["getUint8", 1, Uint8Array],
  u1: ["getUint8", 1, Uint8Array],
  i1: ["getInt8", 1, Int8Array],
  u2: ["getUint16", 2, Uint16Array],
  i2: ["getInt16", 2, Int16Array],
  u4: ["getUint32", 4, Uint32Array],
  i4: ["getInt32", 4, Int32Array],
  u8: ["getBigUint64", 8, Float64Array],
  i8: ["getBigInt64", 8, Float64Array],
  f4: ["getFloat32", 4, Float32Array],
  f8: ["getFloat64", 8, Float64Array],
};
const NPY = { bool: "|b1", i8: "|i1", u8: "|u1", i16: "<i2", i32: "<i4" };

const latin = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

// { shape, values, real } of an .npy file.
export function readNpy(bytes) {
  if (latin(bytes.subarray(0, 6)) !== MAGIC) throw new TypeError("no .npy file");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const long = bytes[6] > 1;
  const start = (long ? 12 : 10) + (long ? view.getUint32(8, true) : view.getUint16(8, true));
  const header = latin(bytes.subarray(long ? 12 : 10, start));
  const [, order, kind] = /'descr': '([<>|=])([a-z]\d+)'/.exec(header) ?? [];
  const dimensions = /'shape': \(([\d, ]*)\)/.exec(header);
  if (!dimensions || !READERS[kind]) throw new TypeError(`an .npy file that holds no plain numbers: ${header.trim()}`);
  if (/'fortran_order': True/.test(header)) throw new TypeError("an .npy file in Fortran order; save a copy in C order");
  const shape = dimensions[1].split(",").filter((text) => text.trim()).map(Number);
  const [get, width, array] = READERS[kind];
  if (bytes.length !== start + width * elements(shape)) throw new TypeError("an .npy file that ends too early or too late");
  const values = new array(elements(shape));
  for (let i = 0; i < values.length; i++) values[i] = Number(view[get](start + width * i, order !== ">"));
  return { shape, values, real: kind[0] === "f" };
}

// The bytes of an .npy file: little-endian integers already, a type and a shape.
export function npyOf(dtype, shape, bytes) {
  const tuple = `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
  const text = `{'descr': '${NPY[dtype]}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const header = text + " ".repeat(63 - ((text.length + 10) % 64)) + "\n";
  const start = Uint8Array.from(MAGIC + "\x01\x00", (c) => c.charCodeAt(0));
  const length = Uint8Array.of(header.length & 255, header.length >> 8);
  const parts = [start, length, Uint8Array.from(header, (c) => c.charCodeAt(0)), bytes];
  const file = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((place, part) => (file.set(part, place), place + part.length), 0);
  return file;
}

// { arrays, real } of a JSON text: an array, or arrays by name. Numbers with a fraction make them real.
export function readJson(text) {
  const arrays = JSON.parse(text);
  const each = Array.isArray(arrays) ? [arrays] : Object.values(arrays ?? {});
  const real = each.flat(Infinity).some((value) => typeof value === "number" && !Number.isInteger(value));
  return { arrays, real };
}
