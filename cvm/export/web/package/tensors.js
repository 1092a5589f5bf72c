// Arrays as people hold them, and the integers of samples: shapes, intervals, real values (section 2 of cvm's specification).

export const DTYPES = {
  bool: { code: 0, width: 1, array: Uint8Array, get: "getUint8", set: "setUint8" },
  i8: { code: 1, width: 1, array: Int8Array, get: "getInt8", set: "setInt8" },
  u8: { code: 2, width: 1, array: Uint8Array, get: "getUint8", set: "setUint8" },
  i16: { code: 3, width: 2, array: Int16Array, get: "getInt16", set: "setInt16" },
  i32: { code: 4, width: 4, array: Int32Array, get: "getInt32", set: "setInt32" },
};

export const elements = (shape) => shape.reduce((product, size) => product * size, 1);

// Little-endian, whatever the processor's order.
export function toBytes({ dtype: name, values }) {
  const { width, set } = DTYPES[name];
  const view = new DataView(new ArrayBuffer(width * values.length));
  for (let i = 0; i < values.length; i++) view[set](width * i, values[i], true);
  return new Uint8Array(view.buffer);
}

export function fromBytes(name, shape, bytes) {
  const { width, get, array } = DTYPES[name];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const values = Array.from({ length: elements(shape) }, (_, i) => view[get](width * i, true));
  return { dtype: name, shape, values: array.from(values) };
}

const isNumber = (value) => typeof value === "number" || typeof value === "boolean";
export const isArray = (value) =>
  isNumber(value) || Array.isArray(value) || ArrayBuffer.isView(value) || ArrayBuffer.isView(value?.values);

// A tensor, a typed array, or nested arrays of numbers, as { shape, values }; the shape of a typed array is not known.
export function asArray(value) {
  if (ArrayBuffer.isView(value)) return { shape: null, values: value };
  if (ArrayBuffer.isView(value?.values)) return { shape: value.shape ?? null, values: value.values };
  if (isNumber(value)) return { shape: [], values: [value] };
  const shape = [];
  for (let level = value; Array.isArray(level); level = level[0]) shape.push(level.length);
  if (!shape.length) throw new TypeError("an input is an array: nested, typed, or { shape, values }");
  const values = value.flat(Infinity);
  requireEven(value, shape);
  return { shape, values };
}

function requireEven(value, [size, ...rest]) {
  if (!Array.isArray(value) || value.length !== size) throw new TypeError("an array is ragged: its rows differ in length");
  if (rest.length) value.forEach((row) => requireEven(row, rest));
  else if (!value.every(isNumber)) {
    throw new TypeError("an array holds something that is no number");
  }
}

// The number of samples of an array: its shape is S or [N, ...S]; where S begins with 1, N may also stand in its place.
export function sampleCount({ name, shape }, array) {
  const size = elements(shape);
  const count = array.values.length / size;
  const found = array.shape ?? (count === 1 ? shape : [count, ...shape]);
  const same = (one, other) => one.length === other.length && one.every((item, i) => item === other[i]);
  const each = shape[0] === 1 ? shape.slice(1) : shape;
  const fits = same(found, shape) || same(found.slice(1), each) || same(found.slice(1), shape);
  if (count >= 1 && Number.isInteger(count) && fits) return count;
  if (!array.shape && count >= 1 && Number.isInteger(count)) return count;
  const expected = `[${shape}] or, for N samples, [${["N", ...each]}]`;
  const given = array.shape ? `shape [${array.shape}]` : `${array.values.length} numbers`;
  throw new RangeError(`input '${name}': ${given}; expected ${expected}`);
}

const place = (port, sample, i) => `input '${port.name}', sample ${sample}, element ${i}`;

// One sample of an array of integers, as a tensor.
export function integersOf(port, array, sample) {
  const size = elements(port.shape);
  const values = new DTYPES[port.dtype].array(size);
  for (let i = 0; i < size; i++) {
    const value = Number(array.values[sample * size + i]);
    if (!Number.isInteger(value)) {
      throw new RangeError(`${place(port, sample, i)}: value ${value} is no integer; { real: true } takes real numbers`);
    }
    if (value < port.lo || value > port.hi) {
      throw new RangeError(`${place(port, sample, i)}: value ${value} is outside ${port.lo}..${port.hi}`);
    }
    values[i] = value;
  }
  return { dtype: port.dtype, shape: port.shape, values };
}

// One sample of an array of real numbers: floor(v / scale + 0.5) + zero point, stopped at the ends of the interval. With
// factors, each index of the last axis has a scale of its own; of an endless input nothing counts as clipped.
export function quantized(port, array, sample) {
  requireScale(port);
  const size = elements(port.shape);
  const values = new DTYPES[port.dtype].array(size);
  const isOfReals = port.lo === -(2 ** 30) && port.hi === 2 ** 30; // in 30 bits, whatever their scale
  const takesIntegers =
    ["u8", "i32", "bool"].includes(port.dtype) && !isOfReals && port.scale === 1 && port.zero_point === 0 && !port.factors;
  let clipped = 0;
  for (let i = 0; i < size; i++) {
    const value = Number(array.values[sample * size + i]);
    if (Number.isNaN(value)) throw new RangeError(`${place(port, sample, i)}: value is NaN`);
    if (takesIntegers && value !== Math.floor(value)) {
      throw new RangeError(`${place(port, sample, i)}: value ${value} is a fraction; this input takes integers ${port.lo}..${port.hi}`);
    }
    const scale = port.factors ? port.scale * port.factors[i % port.factors.length] : port.scale;
    const exact = Math.floor(value / scale + 0.5) + port.zero_point;
    values[i] = Math.min(Math.max(exact, port.lo), port.hi);
    clipped += !port.endless && (exact < port.lo || exact > port.hi);
  }
  return { tensor: { dtype: port.dtype, shape: port.shape, values }, clipped };
}

export function dequantized(port, { shape, values }) {
  requireScale(port);
  return { dtype: "f64", shape, values: Float64Array.from(values, (value) => (value - port.zero_point) * port.scale) };
}

function requireScale({ name, scale }) {
  if (scale === null) throw new TypeError(`'${name}' has no scale, so it holds integers: leave real away`);
}

// Samples side by side, shaped as an input of many would be.
export function joined(tensors, { shape }) {
  if (tensors.length === 1) return tensors[0];
  const { dtype: name, values } = tensors[0];
  const all = new values.constructor(tensors.length * values.length);
  tensors.forEach((tensor, i) => all.set(tensor.values, i * values.length));
  return { dtype: name, shape: [tensors.length, ...(shape[0] === 1 ? shape.slice(1) : shape)], values: all };
}
