// The page: an input is drawn or dropped, the program runs, the answer and its receipt are shown and compared.
import { DTYPES, toBytes } from "./tensors.js";
import { receiptText } from "./receipt.js";
import { Program } from "./machine.js";
import { FACTS, WASM } from "./program.js";
import { npyOf, readJson, readNpy } from "./files.js";
import { drawable, integersOfBoard, layoutOf, pixelsOf, takesPrepared } from "./pictures.js";

const BOARD = 320;
const SHOWN = 10;
const LISTED = 48;
const INSTANT = 2e7; // one that costs no more runs while a stroke is drawn
const QUICK = 2e8; // a program that costs no more is tested as the page opens
const byId = (id) => document.getElementById(id);
const layout = drawable(FACTS);
const state = { program: null, samples: [], answers: [], receipt: null, real: false };
globalThis.cvm = state; // for the console

function made(tag, text, options = {}) {
  return Object.assign(document.createElement(tag), { textContent: text ?? "" }, options);
}

const typed = ({ name, dtype, shape }) => `${name}: ${dtype}[${shape}]`;

function tell(text, bad = false) {
  byId("note").textContent = text;
  byId("note").className = bad ? "bad small" : "muted small";
}

// Runs the program on the samples in place, and shows everything that follows.
function give(samples, { real = false, note = "" } = {}) {
  const start = performance.now();
  const answers = samples.map(({ inputs }) => state.program.runSample(inputs));
  const spent = performance.now() - start;
  const receipt = state.program.receipt(samples, answers, { real });
  Object.assign(state, { samples, answers, receipt, real });
  const each = spent / samples.length;
  byId("time").textContent = each < 0.1 ? "under 0.1 ms a sample" : `${each.toFixed(each < 20 ? 1 : 0)} ms a sample`;
  tell(note);
  byId("sample-choice").hidden = samples.length === 1;
  byId("samples").textContent = `of ${samples.length}`;
  Object.assign(byId("sample"), { value: 0, max: samples.length - 1 });
  show(0);
  showReceipt();
  compare();
}

function show(number) {
  byId("none").hidden = true;
  byId("answer").replaceChildren(
    ...FACTS.outputs.flatMap((port) => [
      titled(port, state.answers[number][port.name]),
      picture(state.answers[number][port.name]) ?? bars(port, state.answers[number][port.name]),
    ]),
  );
  if (layout) {
    const [port] = FACTS.inputs;
    paint(byId("seen"), state.samples[number].inputs[port.name], layout);
  }
}

function titled(port) {
  const title = made("h3", port.name);
  title.append(" ", made("span", `${port.dtype}[${port.shape}]`));
  return title;
}

function picture(tensor) {
  const found = layoutOf(tensor.shape);
  return found && Math.min(found.height, found.width) >= 8 ? paint(made("canvas", "", { className: "picture" }), tensor, found) : null;
}

function paint(canvas, tensor, found) {
  const ends = tensor.values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  Object.assign(canvas, { width: found.width, height: found.height });
  const pixels = pixelsOf(tensor, found, ends);
  canvas.getContext("2d").putImageData(new ImageData(pixels, found.width), 0, 0);
  return canvas;
}

// The greatest values of a vector with their places; of anything else the first integers.
function bars(port, { shape, values }) {
  const isVector = shape.filter((size) => size > 1).length <= 1 && values.length > 1;
  if (!isVector) {
    const more = values.length > LISTED ? `, and ${values.length - LISTED} more` : "";
    return made("p", values.slice(0, LISTED).join(" ") + more, { className: "small" });
  }
  const order = Array.from(values.keys()).sort((i, j) => values[j] - values[i] || i - j);
  const least = values[order.at(-1)];
  const span = Math.max(values[order[0]] - least, 1);
  const list = made("div", "", { className: "bars" });
  order.slice(0, SHOWN).forEach((place, rank) => {
    const bar = made("i", "", { className: rank ? "" : "best" });
    bar.style.width = `${1 + (99 * (values[place] - least)) / span}%`;
    list.append(made("b", FACTS.labels[place] ?? place), bar, made("span", number(port, values[place])));
  });
  return list;
}

function number({ scale, zero_point }, value) {
  return scale === null ? String(value) : `${(scale * (value - zero_point)).toPrecision(4)}  (${value})`;
}

function showReceipt() {
  const [first] = state.receipt.samples;
  const rows = [["root", state.receipt.root]];
  for (const kind of ["inputs", "outputs"]) for (const [name, digest] of Object.entries(first[kind])) rows.push([name, digest]);
  byId("digests").hidden = false;
  byId("digests").tBodies[0].replaceChildren(
    ...rows.map(([name, digest]) => {
      const row = made("tr");
      const cell = made("td");
      cell.append(made("code", digest));
      row.append(made("th", name, { title: name }), cell);
      return row;
    }),
  );
  byId("save-receipt").disabled = false;
  byId("save-input").disabled = FACTS.inputs.length > 1;
  byId("replay").hidden = FACTS.inputs.length > 1 || state.real;
}

function compare() {
  const text = byId("stated").value.trim();
  const verdict = byId("verdict");
  verdict.className = "";
  verdict.replaceChildren();
  if (!text) return;
  if (!state.receipt) return verdict.append("Give an input first.");
  try {
    const found = state.program.compare(text, state.receipt);
    verdict.className = found ? "bad" : "good";
    verdict.append(found ? `No match: ${found.what}` : "Match: program, inputs, outputs, cost and root agree.");
    if (found) verdict.append(made("code", `stated ${found.expected}`), made("code", `here   ${found.found}`));
  } catch (problem) {
    verdict.className = "bad";
    verdict.append(problem.message);
  }
}

function save(name, content) {
  const url = URL.createObjectURL(new Blob([content]));
  made("a", "", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function saveInput() {
  const [port] = FACTS.inputs;
  const tensors = state.samples.map(({ inputs }) => inputs[port.name]);
  const each = port.shape[0] === 1 ? port.shape.slice(1) : port.shape;
  const shape = tensors.length === 1 ? port.shape : [tensors.length, ...each];
  const all = new Uint8Array(tensors.length * toBytes(tensors[0]).length);
  tensors.forEach((tensor, i) => all.set(toBytes(tensor), (i * all.length) / tensors.length));
  save("input.npy", npyOf(port.dtype, shape, all));
}

// What was drawn, or a picture file, as one sample.
function giveBoard(note = "") {
  const [port] = FACTS.inputs;
  const { data } = context().getImageData(0, 0, BOARD, BOARD);
  const how = { blackIsLowest: byId("black").value === "lowest", inverted: byId("inverted").checked };
  const values = DTYPES[port.dtype].array.from(integersOfBoard(data, BOARD, port, layout, how));
  give([{ inputs: { [port.name]: { dtype: port.dtype, shape: port.shape, values } } }], { note });
}

const context = () => byId("board").getContext("2d", { willReadFrequently: true });

function clear() {
  Object.assign(context(), { fillStyle: "#000" }).fillRect(0, 0, BOARD, BOARD);
}

function draw() {
  const board = byId("board");
  let last = null;
  const at = (event) => {
    const box = board.getBoundingClientRect();
    return [(event.clientX - box.left) * (BOARD / box.width), (event.clientY - box.top) * (BOARD / box.height)];
  };
  const stroke = (from, to) => {
    const ink = layout.channels === 1 ? "#fff" : byId("ink").value;
    Object.assign(context(), { strokeStyle: ink, lineWidth: BOARD / 9, lineCap: "round", lineJoin: "round" });
    context().beginPath();
    context().moveTo(...from);
    context().lineTo(to[0] + 0.01, to[1]);
    context().stroke();
    if (FACTS.cost <= INSTANT) giveBoard();
  };
  board.addEventListener("pointerdown", (event) => {
    if (event.isTrusted) board.setPointerCapture(event.pointerId);
    last = at(event);
    stroke(last, last);
  });
  board.addEventListener("pointermove", (event) => {
    if (last) stroke(last, (last = at(event)));
  });
  for (const end of ["pointerup", "pointercancel"]) {
    board.addEventListener(end, () => {
      if (last && FACTS.cost > INSTANT) giveBoard();
      last = null;
    });
  }
  byId("clear").addEventListener("click", () => (clear(), giveBoard()));
  for (const id of ["black", "inverted"]) byId(id).addEventListener("change", () => giveBoard());
}

let count = 0; // of files read

async function read(file) {
  await readAs(file);
  document.body.dataset.read = ++count;
}

async function readAs(file) {
  try {
    if (file.type.startsWith("image/")) return await readPicture(file);
    const bytes = new Uint8Array(await file.arrayBuffer());
    if (file.name.endsWith(".npy")) return giveArrays(readNpy(bytes), file.name);
    const text = new TextDecoder().decode(bytes);
    if (/^\s*\{[^]*"format"\s*:\s*"cvm-receipt-/.test(text)) {
      byId("stated").value = text;
      return compare();
    }
    const { arrays, real } = readJson(text);
    return giveArrays(arrays, file.name, real);
  } catch (problem) {
    return tell(`${file.name}: ${problem.message}`, true);
  }
}

function giveArrays(arrays, name, real = arrays.real) {
  const samples = state.program.samples(arrays, { real });
  const clipped = samples.reduce((sum, sample) => sum + (sample.clipped ?? 0), 0);
  const kind = real ? "real numbers" : "integers";
  give(samples, { real, note: `${name}: ${kind}${clipped ? `, ${clipped} outside the range and clipped` : ""}` });
}

async function readPicture(file) {
  if (!layout) throw new TypeError("this program's input is no picture");
  const bitmap = await createImageBitmap(file);
  clear();
  context().drawImage(bitmap, 0, 0, BOARD, BOARD);
  giveBoard(`${file.name}: ${bitmap.width}x${bitmap.height}, drawn at ${layout.width}x${layout.height}; the receipt is of these pixels`);
}

function listen() {
  const chosen = byId("file");
  for (const id of ["choose", "choose-receipt"]) byId(id).addEventListener("click", () => chosen.click());
  chosen.addEventListener("change", async () => {
    for (const file of chosen.files) await read(file);
    chosen.value = "";
  });
  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("over");
  });
  addEventListener("dragleave", () => document.body.classList.remove("over"));
  addEventListener("drop", async (event) => {
    event.preventDefault();
    document.body.classList.remove("over");
    for (const file of [...event.dataTransfer.files]) await read(file);
  });
  byId("fixed").addEventListener("click", () => give([{ inputs: state.program.testSample() }], { note: "The self-test's sample." }));
  byId("stated").addEventListener("input", compare);
  byId("sample").addEventListener("input", (event) => {
    const place = Number(event.target.value);
    if (state.answers[place]) show(place);
  });
  byId("save-receipt").addEventListener("click", () => save("receipt.json", receiptText(state.receipt)));
  byId("save-input").addEventListener("click", saveInput);
}

function test() {
  const same = state.program.selfTest();
  byId("test").textContent = same ? "match" : "mismatch: do not trust this browser";
  byId("test").className = same ? "good" : "bad";
}

function describe() {
  byId("program").textContent = FACTS.program;
  byId("inputs").textContent = FACTS.inputs.map(typed).join(", ");
  byId("outputs").textContent = FACTS.outputs.map(typed).join(", ");
  byId("kinds").textContent = layout ? "a picture, an .npy or a .json file." : "an .npy or a .json file.";
  if (!layout) return;
  const [port] = FACTS.inputs;
  byId("drawing").hidden = false;
  byId("seen-size").textContent = `${layout.width}x${layout.height}, as the program gets it`;
  byId("prepared").hidden = !takesPrepared(port);
  byId("ink-choice").hidden = layout.channels === 1;
  byId("black-choice").hidden = port.zero_point === null || port.zero_point === port.lo;
  Object.assign(byId("seen"), { width: layout.width, height: layout.height });
  clear();
}

describe();
try {
  state.program = await Program.start(FACTS, WASM);
  listen();
  if (layout) draw();
  if (FACTS.cost <= QUICK) test();
  else byId("test").replaceChildren(made("button", "Run", { onclick: test }));
} catch (problem) {
  byId("test").className = "bad";
  byId("test").textContent = problem.message;
}
document.body.dataset.ready = "yes";
