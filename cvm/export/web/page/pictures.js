// Inputs and outputs that look like pictures, and how a canvas becomes integers.

const SMALLEST = 4;
const LARGEST = 1024;
const CHANNELS = [1, 3];

// { height, width, channels, at(y, x, c) } of a shape [H,W], [1,H,W], [1,C,H,W] or [1,H,W,C]; null if it is no picture.
export function layoutOf(shape) {
  const ones = shape.length > 2 && shape[0] === 1 ? shape.slice(1) : shape;
  const found = ones.length === 2 ? laidOut([...ones, 1], true) : ones.length === 3 ? of3(ones) : null;
  return found;
}

function of3([a, b, c]) {
  if (CHANNELS.includes(c)) return laidOut([a, b, c], true);
  return CHANNELS.includes(a) ? laidOut([b, c, a], false) : null;
}

function laidOut([height, width, channels], last) {
  if (Math.min(height, width) < SMALLEST || Math.max(height, width) > LARGEST) return null;
  const at = last ? (y, x, c) => (y * width + x) * channels + c : (y, x, c) => (c * height + y) * width + x;
  return { height, width, channels, at };
}

// The layout of a program's only input, if that is a picture's.
export function drawable({ inputs }) {
  const [port] = inputs;
  return inputs.length === 1 && port.dtype !== "bool" ? layoutOf(port.shape) : null;
}

// The integers for the least and the greatest brightness: bytes as they are, else from real 0 or the lowest integer on.
export function brightness({ dtype, scale, zero_point, lo, hi }, blackIsLowest) {
  if (dtype === "u8" && zero_point === 0 && scale === 1) return [Math.max(0, lo), Math.min(255, hi)];
  const zero = zero_point === null ? lo : Math.min(Math.max(zero_point, lo), hi);
  return [blackIsLowest || zero === hi ? lo : zero, hi];
}

// Whether an input takes pictures that were prepared, by a mean and a deviation: then there are reals below black.
export function takesPrepared({ scale, zero_point, lo }) {
  return scale !== null && zero_point !== null && lo < zero_point;
}

// RGBA bytes of a square board, averaged over the area of each pixel and scaled to integers.
export function integersOfBoard(rgba, size, port, { height, width, channels, at }, { blackIsLowest, inverted }) {
  const [low, high] = brightness(port, blackIsLowest);
  const values = new Int32Array(height * width * channels);
  const cell = (i, count) => [Math.floor((i * size) / count), Math.max(Math.ceil(((i + 1) * size) / count), 1)];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const sums = sumsOver(rgba, size, cell(y, height), cell(x, width));
      for (let c = 0; c < channels; c++) {
        const mean = channels === 1 ? (sums[0] + sums[1] + sums[2]) / 3 / sums[3] : sums[c] / sums[3];
        const share = inverted ? 1 - mean / 255 : mean / 255;
        values[at(y, x, c)] = low + Math.round(share * (high - low));
      }
    }
  }
  return values;
}

function sumsOver(rgba, size, [top, bottom], [left, right]) {
  const sums = [0, 0, 0, 0];
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      for (let c = 0; c < 3; c++) sums[c] += rgba[4 * (y * size + x) + c];
      sums[3]++;
    }
  }
  return sums;
}

// RGBA bytes of a tensor: the least value black, the greatest white.
export function pixelsOf({ values }, { height, width, channels, at }, [low, high]) {
  const pixels = new Uint8ClampedArray(4 * height * width);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let c = 0; c < 4; c++) {
        const value = c === 3 ? high : values[at(y, x, channels === 1 ? 0 : c)];
        pixels[4 * (y * width + x) + c] = (255 * (value - low)) / Math.max(high - low, 1);
      }
    }
  }
  return pixels;
}
