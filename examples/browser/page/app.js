// Load the model, read images that the visitor gives, and show the answers.

import { decode, letterbox, toBytes, toImageData, turn } from "./pixels.js";
import { describeModel } from "./model_description.js";
import * as ort from "./ort.wasm.bundle.min.mjs";

const element = (id) => document.getElementById(id);

ort.env.wasm.numThreads = 1; // several threads need headers that many static hosts cannot send

let model; // the session, class names and image size
let image; // the square image that was opened last
let upright; // its probabilities before any turn
let opened = 0; // number of files so far: a file that is decoded late does not replace a later one
let isComputing = false;
let isOutdated = false;

async function loadModel() {
  const response = await fetch("model.onnx");
  if (!response.ok) throw new Error(`model.onnx cannot be read: status ${response.status}`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { ...describeModel(bytes), session: await ort.InferenceSession.create(bytes) };
}

async function classify(square) {
  const { session, size } = model;
  const pixels = new ort.Tensor("uint8", toBytes(square), [1, size, size, 3]);
  const start = performance.now();
  const { probabilities } = await session.run({ pixels });
  return { probabilities: [...probabilities.data], milliseconds: performance.now() - start };
}

async function open(file) {
  if (!file || !model) return;
  const number = ++opened;
  try {
    const square = letterbox(await decode(file), model.size);
    if (number !== opened) return;
    image = square;
  } catch {
    if (number === opened) element("status").textContent = `'${file.name}' is not an image that this browser can read.`;
    return;
  }
  upright = (await classify(image)).probabilities;
  element("status").textContent = "";
  element("angle").value = 0;
  element("result").hidden = false;
  await update();
}

/** Show the answer for the current angle. While one is computed, only the last of several new angles is kept. */
async function update() {
  element("result").ariaBusy = "true";
  isOutdated = true;
  if (isComputing) return;
  isComputing = true;
  while (isOutdated) {
    isOutdated = false;
    const degrees = Number(element("angle").value);
    const turned = turn(image, degrees);
    show(turned, degrees, await classify(turned));
  }
  isComputing = false;
  element("result").ariaBusy = "false";
}

function show(turned, degrees, { probabilities, milliseconds }) {
  const { classNames, size } = model;
  const canvas = element("picture");
  canvas.width = canvas.height = size;
  canvas.getContext("2d").putImageData(toImageData(turned), 0, 0);
  const change = Math.max(...probabilities.map((value, i) => Math.abs(value - upright[i])));
  element("degrees").value = degrees;
  const label = classNames[probabilities.indexOf(Math.max(...probabilities))];
  if (element("answer").textContent !== label) element("answer").textContent = label; // read aloud when it changes
  element("caption").textContent = `What the network sees: ${size} × ${size} pixels, ${milliseconds.toFixed(0)} ms`;
  element("change").textContent = `Largest change of a probability by the turn: ${change.toFixed(4)}`;
  element("probabilities").replaceChildren(...classNames.map((name, i) => row(name, probabilities[i])));
}

function row(name, probability) {
  const result = document.createElement("tr");
  const [head, number, bar] = ["th", "td", "td"].map((tag) => result.appendChild(document.createElement(tag)));
  head.scope = "row";
  head.textContent = name;
  number.className = "number";
  number.textContent = `${(100 * probability).toFixed(2)} %`;
  const meter = bar.appendChild(document.createElement("meter"));
  meter.value = probability;
  meter.ariaLabel = `probability of ${name}`;
  return result;
}

element("file").addEventListener("change", ({ target }) => open(target.files[0]));
element("angle").addEventListener("input", update);
element("quarter").addEventListener("click", () => {
  element("angle").value = (Number(element("angle").value) + 90) % 360;
  update();
});
document.addEventListener("paste", ({ clipboardData }) => open(clipboardData.files[0]));
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    element("drop").classList.toggle("over", name === "dragover");
    if (name === "drop") open(event.dataTransfer.files[0]);
  });
}

try {
  model = await loadModel();
  element("file").disabled = false;
  element("status").textContent = `Ready for images of: ${model.classNames.join(", ")}`;
} catch (error) {
  element("status").textContent = `The model cannot be loaded: ${error.message}`;
}
