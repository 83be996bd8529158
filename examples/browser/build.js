// Copy the page, the model and the WebAssembly build of onnxruntime into one folder that any web server can serve.
//
//     npm run build -- MODEL [FOLDER]

import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describeModel } from "./page/model_description.js";

const RUNTIME = ["ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"];

const here = fileURLToPath(new URL(".", import.meta.url));
const runtime = join(here, "node_modules", "onnxruntime-web", "dist");

function build(model, folder = join(here, "dist")) {
  if (!model) throw new Error("expected the path of a model, got none: npm run build -- model.onnx");
  if (!existsSync(model)) {
    throw new Error(`'${model}' does not exist: write it with 'tigranet export MODEL --preprocess -o ${model}'`);
  }
  if (!existsSync(runtime)) throw new Error("onnxruntime-web is not installed: run 'npm ci' first");
  try {
    describeModel(readFileSync(model));
  } catch (error) {
    throw new Error(`'${model}': ${error.message}`);
  }
  const written = new Set([...readdirSync(join(here, "page")), ...RUNTIME, "model.onnx"]);
  const others = existsSync(folder) ? readdirSync(folder).filter((name) => !written.has(name)) : [];
  if (others.length) {
    throw new Error(`expected a new or empty folder or an earlier build, got one with '${join(folder, others[0])}'`);
  }
  cpSync(join(here, "page"), folder, { recursive: true });
  for (const file of RUNTIME) copyFileSync(join(runtime, file), join(folder, file));
  copyFileSync(model, join(folder, "model.onnx"));
  const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  return `${resolve(folder)}: ${(bytes / 1e6).toFixed(1)} MB`;
}

try {
  console.log(build(...process.argv.slice(2)));
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
}
