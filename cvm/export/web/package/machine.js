// A program's WebAssembly with what surrounds a run: samples in, integers or real numbers out, a receipt.
import { DTYPES, asArray, elements, fromBytes, isArray, joined, sampleCount, toBytes } from "./tensors.js";
import { dequantized, integersOf, quantized } from "./tensors.js";
import { digestOf, firstMismatch, readReceipt, receiptOf } from "./receipt.js";

const fromEntries = (ports, value) => Object.fromEntries(ports.map((port, i) => [port.name, value(port, i)]));

async function instantiated(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  try {
    return (await WebAssembly.instantiate(bytes)).instance;
  } catch (problem) {
    if (!(problem instanceof WebAssembly.CompileError)) throw problem;
    const needed = "Chrome 91, Firefox 89, Safari 16.4, Node 16.4 or newer";
    throw new Error(`this machine cannot run the program's WebAssembly with 128-bit vectors; ${needed} can`, { cause: problem });
  }
}

export class Program {
  #wasm;

  constructor(facts, instance) {
    this.facts = facts;
    this.#wasm = instance.exports;
  }

  static async start(facts, base64) {
    return new Program(facts, await instantiated(base64));
  }

  get id() {
    return this.facts.program;
  }

  // The program on all samples of some arrays: by input name, or the array alone where there is one input.
  run(arrays, { real = false } = {}) {
    const samples = this.samples(arrays, { real });
    const answers = samples.map(({ inputs }) => this.runSample(inputs));
    const outputs = fromEntries(this.facts.outputs, (port) => {
      const whole = joined(answers.map((answer) => answer[port.name]), port);
      return real ? dequantized(port, whole) : whole;
    });
    return { outputs, receipt: this.receipt(samples, answers, { real }) };
  }

  // The integers of each sample: { inputs, clipped }.
  samples(arrays, { real = false } = {}) {
    const { inputs } = this.facts;
    const given = inputs.map((port) => asArray(this.#named(arrays, port)));
    const counts = inputs.map((port, i) => sampleCount(port, given[i]));
    if (new Set(counts).size > 1) {
      const listed = inputs.map(({ name }, i) => `'${name}' ${counts[i]}`).join(", ");
      throw new RangeError(`inputs have different numbers of samples: ${listed}`);
    }
    return Array.from({ length: counts[0] }, (_, sample) => {
      if (!real) return { inputs: fromEntries(inputs, (port, i) => integersOf(port, given[i], sample)) };
      const found = inputs.map((port, i) => quantized(port, given[i], sample));
      const clipped = found.reduce((sum, item) => sum + item.clipped, 0);
      return { inputs: fromEntries(inputs, (_port, i) => found[i].tensor), clipped };
    });
  }

  #named(arrays, port) {
    if (this.facts.inputs.length === 1 && isArray(arrays)) return arrays;
    if (Object.hasOwn(arrays, port.name)) return arrays[port.name];
    throw new TypeError(`no array for input '${port.name}'`);
  }

  // One sample's integers in, its integers out.
  runSample(inputs) {
    this.facts.inputs.forEach((port, i) => this.#memory(this.#wasm.cvm_input(i), port).set(toBytes(inputs[port.name])));
    const refused = this.#wasm.cvm_run();
    if (refused) throw new RangeError(`input '${this.facts.inputs[refused - 1].name}' holds an integer outside its interval`);
    return fromEntries(this.facts.outputs, (port, i) => fromBytes(port.dtype, port.shape, this.#memory(this.#wasm.cvm_output(i), port)));
  }

  #memory(place, { dtype, shape }) {
    return new Uint8Array(this.#wasm.memory.buffer, place >>> 0, elements(shape) * DTYPES[dtype].width);
  }

  // What `cvm run --receipt` writes for the same samples.
  receipt(samples, answers, { real = false } = {}) {
    const digests = (ports, tensors) => fromEntries(ports, ({ name }) => digestOf(tensors[name]));
    const entries = samples.map(({ inputs, clipped }, i) => ({
      inputs: digests(this.facts.inputs, inputs),
      outputs: digests(this.facts.outputs, answers[i]),
      cost: this.facts.cost,
      ...(real && { clipped }),
    }));
    return receiptOf(this.facts, real ? this.facts.metadata : null, entries);
  }

  // Null if a receipt made elsewhere (its text, or the object) states what was found here, else the first difference.
  compare(stated, found) {
    const receipt = readReceipt(typeof stated === "string" ? stated : JSON.stringify(stated));
    return firstMismatch(receipt, found, this.facts.metadata ?? "none");
  }

  // Integers from a fixed sequence inside each input's interval.
  testSample() {
    return fromEntries(this.facts.inputs, (port, number) => {
      const values = new DTYPES[port.dtype].array(elements(port.shape));
      const span = BigInt(port.hi - port.lo + 1);
      for (let i = 0; i < values.length; i++) values[i] = Number((span * BigInt(spread(i + number * 0x9e3779b9))) >> 32n) + port.lo;
      return { dtype: port.dtype, shape: port.shape, values };
    });
  }

  // Runs the test's sample. True if the receipt is what cvm's reference machine gave when the package was written.
  selfTest() {
    return this.run(this.testSample()).receipt.root === this.facts.test_root;
  }
}

function spread(place) {
  let x = place >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}
