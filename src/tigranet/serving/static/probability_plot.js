// A small plot: the probability of the answer at 0 degrees, at every angle that was measured.

import { normalized } from "./rotation.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = 360;
const HEIGHT = 132;
const LEFT = 28;
const RIGHT = 342;
const TOP = 10;
const BOTTOM = 108;
/** Degrees between points that are connected, at most. */
const MAX_GAP = 15;

function svg(name, attributes, text = "") {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

const xOf = (degrees) => LEFT + ((RIGHT - LEFT) * degrees) / 360;
const yOf = (probability) => BOTTOM - (BOTTOM - TOP) * probability;

/** Connect points that are close to each other. Between others nothing was measured, and no line is drawn. */
function lineOf(points) {
  return points
    .map(([degrees, { probability }], i) => {
      const isClose = i > 0 && degrees - points[i - 1][0] <= MAX_GAP;
      return `${isClose ? "L" : "M"}${xOf(degrees)} ${yOf(probability)}`;
    })
    .join("");
}

export class ProbabilityPlot {
  #points = new Map(); // by angle
  #root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "probability_plot" });
  #line = svg("path", { class: "measured" });
  #marks = svg("g", {});
  #cursor = svg("line", { class: "cursor", y1: TOP, y2: BOTTOM });

  /** Add the plot, which is empty, to an element. */
  constructor(parent) {
    for (const probability of [0, 0.5, 1]) {
      const y = yOf(probability);
      this.#root.append(svg("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: y, y2: y }));
      this.#root.append(svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, String(probability)));
    }
    for (const degrees of [0, 90, 180, 270, 360]) {
      const x = xOf(degrees);
      this.#root.append(svg("line", { class: "grid", x1: x, x2: x, y1: BOTTOM, y2: BOTTOM + 4 }));
      this.#root.append(svg("text", { x, y: BOTTOM + 18, "text-anchor": "middle" }, `${degrees}°`));
    }
    this.#root.append(this.#cursor, this.#line, this.#marks);
    parent.append(this.#root);
  }

  /** Show the probability at an angle, and whether the network gave the same label as at 0 degrees. */
  add(degrees, probability, isSameLabel) {
    this.#points.set(normalized(degrees), { probability, isSameLabel });
    if (normalized(degrees) === 0) this.#points.set(360, { probability, isSameLabel });
    const points = [...this.#points].sort(([a], [b]) => a - b);
    this.#line.setAttribute("d", lineOf(points));
    this.#marks.replaceChildren(
      ...points.map(([x, point]) =>
        svg("circle", {
          cx: xOf(x),
          cy: yOf(point.probability),
          r: point.isSameLabel ? 2 : 3.5,
          class: point.isSameLabel ? "same" : "other",
        }),
      ),
    );
    this.moveTo(degrees);
  }

  /** Mark the current angle. */
  moveTo(degrees) {
    this.#cursor.setAttribute("x1", xOf(degrees));
    this.#cursor.setAttribute("x2", xOf(degrees));
  }

  /** Describe the plot in words, for its caption. */
  describe(label) {
    const points = [...this.#points].filter(([degrees]) => degrees < 360);
    const [lowestAngle, lowest] = points.reduce((a, b) => (b[1].probability < a[1].probability ? b : a));
    const changed = points.filter(([, point]) => !point.isSameLabel).length;
    const range = `lowest ${lowest.probability.toFixed(4)} at ${lowestAngle}°`;
    const labels = changed === 0 ? "same label at all of them" : `another label at ${changed} of them`;
    const text = `Probability of “${label}” at ${points.length} measured angle${points.length > 1 ? "s" : ""}: ${range}, ${labels}`;
    this.#root.setAttribute("aria-label", text);
    return text;
  }
}
