// The answer of one model for the image at the current angle, compared with its answer at 0 degrees.

import { mostProbable, probabilityText } from "./answer_text.js";
import { drawBase, drawRotated, evidenceCanvas } from "./evidence.js";
import { ProbabilityPlot } from "./probability_plot.js";

/** Number of classes that are shown at first. */
const FEW_CLASSES = 6;

/** Write a change of a probability with its sign. */
export function signed(change) {
  const text = Math.abs(change).toFixed(6);
  if (Number(text) === 0) return "0";
  return `${change < 0 ? "−" : "+"}${text}`;
}

export class ModelCard {
  #root;
  #plot;
  #upright;
  #reference = null;
  #showsAll = false;
  answer = null;
  angle = 0;
  readsColour = null; // once it is known

  /** `upright` is a canvas with the image at 0 degrees. */
  constructor(model, upright) {
    this.model = model;
    this.#upright = upright;
    this.#root = document.querySelector("#card_template").content.firstElementChild.cloneNode(true);
    this.#root.dataset.model = model;
    this.#find(".card_model").textContent = model;
    this.#plot = new ProbabilityPlot(this.#find(".plot"));
    this.#find(".plot").append(this.#find(".plot figcaption"));
    this.#find(".all_classes").addEventListener("click", () => {
      this.#showsAll = !this.#showsAll;
      this.#showClasses();
    });
  }

  get element() {
    return this.#root;
  }

  #find(selector) {
    return this.#root.querySelector(selector);
  }

  /** Show an answer of the server for the image at an angle. The first answer is that at 0 degrees. */
  show(answer, angle) {
    this.#reference ??= answer;
    this.answer = { ...answer, picture: evidenceCanvas(answer.evidence) };
    this.angle = angle;
    const before = this.#reference.probabilities;
    const label = mostProbable(before);
    const [now, change] = [answer.probabilities[label], answer.probabilities[label] - before[label]];
    this.#root.dataset.angle = angle;
    this.showError(null);
    this.#find(".label").textContent = answer.label;
    this.#find(".probability").textContent = probabilityText(answer);
    this.#root.dataset.unknown = answer.unknown;
    this.#find(".unknown").hidden = !answer.unknown;
    this.#find(".change").textContent = this.#describeChange(answer, angle, label, change);
    this.#plot.add(angle, now, answer.label === this.#reference.label);
    this.#find(".plot figcaption").textContent = this.#plot.describe(label);
    this.#showClasses();
    this.#showEvidence();
  }

  /** Say why there is no answer. The last answer stays; null removes the message. */
  showError(text) {
    const message = this.#find(".message");
    message.hidden = text === null;
    message.textContent = text ?? "";
  }

  /** Mark the current angle before its answer is there. */
  moveTo(angle) {
    this.#plot.moveTo(angle);
  }

  #describeChange(answer, angle, label, change) {
    if (angle === 0) return "at 0°";
    if (answer.label !== this.#reference.label) return `at ${angle}°: at 0° the answer was ${this.#reference.label}`;
    const isEqual = Object.entries(answer.probabilities).every(
      ([name, value]) => value === this.#reference.probabilities[name],
    );
    return isEqual ? `at ${angle}°: exactly as at 0°` : `at ${angle}°: ${signed(change)} against 0°`;
  }

  /** Classes stay in the order of their probabilities at 0 degrees, so that rows do not jump. */
  #showClasses() {
    const before = this.#reference.probabilities;
    const names = Object.keys(before).sort((a, b) => before[b] - before[a]);
    const current = mostProbable(this.answer.probabilities);
    const shown = names.filter((name, i) => this.#showsAll || i < FEW_CLASSES || name === current);
    this.#find("tbody").replaceChildren(...shown.map((name) => this.#classRow(name, name === current)));
    const button = this.#find(".all_classes");
    button.hidden = names.length <= FEW_CLASSES;
    button.textContent = this.#showsAll ? "Show fewer classes" : `Show all ${names.length} classes`;
  }

  #classRow(name, isCurrent) {
    const [before, now] = [this.#reference.probabilities[name], this.answer.probabilities[name]];
    const row = document.createElement("tr");
    row.className = isCurrent ? "current" : "";
    const heading = document.createElement("th");
    heading.scope = "row";
    const text = document.createElement("span");
    text.textContent = text.title = name;
    heading.append(text);
    const bar = document.createElement("td");
    bar.className = "bar";
    const [track, fill, tick] = ["div", "span", "i"].map((name) => document.createElement(name));
    fill.style.width = `${100 * now}%`;
    tick.style.left = `${100 * before}%`; // where the bar ends at 0 degrees
    track.append(fill, tick);
    bar.append(track);
    row.append(heading, bar, numberCell(now.toFixed(4), now), numberCell(signed(now - before), now - before));
    return row;
  }

  /** Draw the explanation on the upright image. It is rotated back, so it stays put if the explanation does. */
  #showEvidence() {
    const canvas = this.#find(".evidence canvas");
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = this.#upright.width > canvas.width;
    drawBase(context, this.#upright);
    context.imageSmoothingEnabled = true;
    drawRotated(context, this.answer.picture, -this.angle);
    const name = this.answer.explained_class;
    const caption = this.#find(".evidence figcaption");
    const [orange, blue] = [document.createElement("b"), document.createElement("b")];
    [orange.className, orange.textContent, blue.className, blue.textContent] = ["for", "Orange", "against", "blue"];
    caption.replaceChildren(orange, ` pixels speak for “${name}”, `, blue, " pixels against it. The map is turned back to 0°.");
    canvas.setAttribute("aria-label", `Evidence for ${name} on the image at 0 degrees`);
  }
}

function numberCell(text, value) {
  const cell = document.createElement("td");
  cell.className = "number";
  cell.textContent = text;
  cell.dataset.value = value;
  return cell;
}
