/** What an input takes: nested arrays, a typed array, or a typed array with its shape; N samples along the first axis. */
export type ArrayLike =
  | number
  | boolean
  | readonly NestedNumbers[]
  | ArrayBufferView
  | { shape?: readonly number[]; values: ArrayBufferView };
export type NestedNumbers = number | boolean | readonly NestedNumbers[];

/** Row-major integers; of real outputs dtype is "f64". */
export interface Tensor {
  dtype: "bool" | "i8" | "u8" | "i16" | "i32" | "f64";
  shape: number[];
  values: Uint8Array | Int8Array | Int16Array | Int32Array | Float64Array;
}

/**
 * An input or output: its type, the interval of its integers, and real = scale * (integer - zero_point). With factors, the scale
 * of index i of the last axis is scale * factors[i]. A number beyond the interval of an endless
 * input gives the same outputs as the nearer end.
 */
export interface Port {
  name: string;
  dtype: Tensor["dtype"];
  shape: number[];
  lo: number;
  hi: number;
  scale: number | null;
  zero_point: number | null;
  factors: number[] | null;
  endless?: boolean; // of inputs
}

export interface SampleReceipt {
  inputs: Record<string, string>;
  outputs: Record<string, string>;
  cost: number;
  trace?: string;
  clipped?: number;
}

/** As `cvm run --receipt` writes it. */
export interface Receipt {
  format: "cvm-receipt-1" | "cvm-receipt-2";
  program: string;
  cost_weights: number;
  metadata?: string;
  samples: SampleReceipt[];
  root: string;
}

export interface Answer {
  outputs: Record<string, Tensor>;
  receipt: Receipt;
}

export interface Mismatch {
  what: string;
  expected: string | number;
  found: string | number;
}

export interface Program {
  readonly id: string;
  readonly facts: { program: string; metadata: string | null; cost: number; inputs: Port[]; outputs: Port[] };
  /** Runs every sample. Integers inside the inputs' intervals; with `real`, real numbers in and out, by the scales. */
  run(arrays: ArrayLike | Record<string, ArrayLike>, options?: { real?: boolean }): Answer;
  /** Null if a receipt that was made elsewhere states what was found here, else the first difference. */
  compare(stated: string | Receipt, found: Receipt): Mismatch | null;
  /** Whether the fixed test sample gives what cvm's reference machine gave. */
  selfTest(): boolean;
}

export function load(): Promise<Program>;

/** The text of a receipt's file, the same bytes as cvm writes. */
export function receiptText(receipt: Receipt): string;
