// const program = await load(); const { outputs, receipt } = program.run(array);
import { Program } from "./machine.js";
import { FACTS, WASM } from "./program.js";

export { receiptText } from "./receipt.js";

export const load = () => Program.start(FACTS, WASM);
