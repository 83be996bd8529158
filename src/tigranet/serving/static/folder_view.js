// Many images: answers in a table that can be sorted, filtered and saved.

import { probabilityText } from "./answer_text.js";
import { csvOf, download } from "./csv.js";
import { predict } from "./server.js";
import { drawThumbnail } from "./thumbnail.js";

/** Number of rows that are shown at first, and that each click on the button adds. */
const PAGE_ROWS = 200;
const REDRAW_MILLISECONDS = 200;
const ALL = "";

const find = (id) => document.getElementById(id);

export class FolderView {
  #entries = []; // {file, path, label, probability, unknown, confidence, note, error, row}
  #run = 0;
  #model = null;
  #sort = { column: "confidence", direction: -1 };
  #numRows = PAGE_ROWS;
  #openImage;
  #announce;

  /** `openImage` shows one of the files alone. */
  constructor(openImage, announce) {
    this.#openImage = openImage;
    this.#announce = announce;
    find("stop").addEventListener("click", () => this.#finish("Stopped: "));
    find("filter").addEventListener("change", () => this.#draw());
    find("download").addEventListener("click", () => {
      const rows = this.#shown();
      download("answers.csv", csvOf(["path", "label", "probability"], rows));
    });
    find("more").addEventListener("click", () => {
      this.#numRows += PAGE_ROWS;
      this.#draw();
    });
    for (const heading of document.querySelectorAll("#answers th[data-column]")) {
      heading.querySelector("button").addEventListener("click", () => this.#sortBy(heading.dataset.column));
    }
  }

  /** Use another model for all files. */
  useModel(model) {
    this.#model = model;
    if (this.#entries.length > 0) this.open(this.#entries, 0);
  }

  /** Ask for the labels of files, one after another. `numOthers` files were left out. */
  async open(files, numOthers) {
    const run = ++this.#run;
    this.#entries = files.map(({ file, path }) => ({ file, path, label: null, probability: null, error: null }));
    this.#numRows = PAGE_ROWS;
    find("results").hidden = false;
    find("stop").hidden = false;
    find("filter").value = ALL;
    let lastDraw = 0;
    for (const entry of this.#entries) {
      try {
        Object.assign(entry, await this.#answer(entry.file));
      } catch (error) {
        entry.error = error.message;
      }
      if (run !== this.#run) return; // stopped, or other files were chosen
      if (performance.now() - lastDraw > REDRAW_MILLISECONDS) {
        this.#draw();
        lastDraw = performance.now();
      }
    }
    const others = `${numOthers} ${numOthers === 1 ? "file of another kind was" : "files of other kinds were"} left out.`;
    this.#finish("", numOthers > 0 ? ` ${others}` : "");
  }

  async #answer(file) {
    const answer = await predict(this.#model, file);
    const { label, probability, unknown } = answer;
    // Unknown images come after all others, however probable their most probable class is.
    return { label, probability, unknown, confidence: unknown ? probability - 1 : probability, note: probabilityText(answer) };
  }

  #finish(start, end = "") {
    this.#run++;
    find("stop").hidden = true;
    this.#draw();
    const text = `${start}${find("folder_status").textContent}${end}`;
    find("folder_status").textContent = text;
    this.#announce(text);
  }

  #sortBy(column) {
    const isSame = this.#sort.column === column;
    this.#sort = { column, direction: isSame ? -this.#sort.direction : column === "confidence" ? -1 : 1 };
    for (const heading of document.querySelectorAll("#answers th[data-column]")) {
      if (heading.dataset.column !== column) heading.removeAttribute("aria-sort");
      else heading.setAttribute("aria-sort", this.#sort.direction > 0 ? "ascending" : "descending");
    }
    this.#draw();
  }

  /** Return the answers with the chosen label, in the order of the table. */
  #shown() {
    const { column, direction } = this.#sort;
    const label = find("filter").value;
    const compare = (a, b) =>
      typeof a[column] === "number" ? a[column] - b[column] : a[column].localeCompare(b[column], "en", { numeric: true });
    return this.#entries
      .filter((entry) => entry.label !== null && (label === ALL || entry.label === label))
      .sort((a, b) => direction * compare(a, b) || (a.path < b.path ? -1 : 1));
  }

  #draw() {
    const answers = this.#entries.filter((entry) => entry.label !== null);
    const failures = this.#entries.filter((entry) => entry.error !== null);
    this.#drawFilter(answers);
    const shown = this.#shown();
    const rows = shown.slice(0, this.#numRows).map((entry) => (entry.row ??= this.#rowOf(entry)));
    find("answers").tBodies[0].replaceChildren(...rows);
    find("more").hidden = shown.length <= this.#numRows;
    find("more").textContent = `Show ${Math.min(PAGE_ROWS, shown.length - this.#numRows)} more`;
    find("download").disabled = shown.length === 0;
    find("download").textContent = `Download ${shown.length === 1 ? "1 row" : `${shown.length} rows`} as CSV`;
    const done = answers.length + failures.length;
    find("folder_progress").value = this.#entries.length ? done / this.#entries.length : 0;
    find("folder_status").textContent = `${answers.length} of ${this.#entries.length} images have an answer.`;
    this.#drawFailures(failures);
  }

  #drawFilter(answers) {
    const counts = new Map();
    for (const { label } of answers) counts.set(label, (counts.get(label) ?? 0) + 1);
    const names = [...counts.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const chosen = counts.has(find("filter").value) ? find("filter").value : ALL;
    const option = (value, text) => new Option(text, value, false, value === chosen);
    find("filter").replaceChildren(
      option(ALL, `all (${answers.length})`),
      ...names.map((name) => option(name, `${name} (${counts.get(name)})`)),
    );
  }

  #drawFailures(failures) {
    const details = find("unreadable");
    details.hidden = failures.length === 0;
    const summary = `${failures.length} file${failures.length === 1 ? "" : "s"} without an answer`;
    details.querySelector("summary").textContent = summary;
    details.querySelector("ul").replaceChildren(
      ...failures.map(({ path, error }) => {
        const item = document.createElement("li");
        item.textContent = `${path}: ${error}`;
        return item;
      }),
    );
  }

  #rowOf(entry) {
    const row = document.createElement("tr");
    const [picture, name, label, probability] = Array.from({ length: 4 }, () => document.createElement("td"));
    const canvas = document.createElement("canvas");
    canvas.setAttribute("aria-hidden", "true");
    drawThumbnail(canvas, entry.file);
    picture.append(canvas);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet path";
    button.textContent = entry.path;
    button.setAttribute("aria-label", `Open ${entry.path}`);
    button.addEventListener("click", () => this.#openImage(entry.file));
    name.append(button);
    label.textContent = entry.label;
    if (entry.unknown) label.title = entry.note;
    row.className = entry.unknown ? "unknown" : "";
    probability.textContent = entry.probability.toFixed(4);
    probability.dataset.value = entry.probability;
    probability.className = "number";
    row.append(picture, name, label, probability);
    return row;
  }
}
