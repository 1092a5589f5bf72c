// node test.js: the fixed sample must give what cvm's reference machine gave when this package was written.
import { load } from "./index.js";

const program = await load();
const { receipt } = program.run(program.testSample());
const same = receipt.root === program.facts.test_root;
for (const [name, digest] of Object.entries(receipt.samples[0].outputs)) console.log(name, digest);
console.log("root", receipt.root, same ? "match" : `mismatch, expected ${program.facts.test_root}`);
process.exitCode = same ? 0 : 1;
