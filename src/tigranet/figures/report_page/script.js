"use strict";

// Where a line may end inside a name.
const WORD_END = /(?<=[_/\\,;:|+-])(?=\w)|(?<=[a-z])(?=[A-Z][a-z])/;

// Rotate all pictures to the angle of the slider, and show the answers at this angle.
(() => {
  const slider = document.getElementById("angle");
  if (!slider) return;
  const output = document.getElementById("angle-value");
  const button = document.getElementById("turn");
  const pictures = [...document.querySelectorAll(".turned .frame img")];
  const rows = [...document.querySelectorAll(".turned [data-answers]")].map((row) => ({
    row,
    answers: JSON.parse(row.dataset.answers),
    mark: row.querySelector(".mark"),
    verdict: row.querySelector(".unseen"),
    label: row.querySelector(".label"),
    probability: row.querySelector(".probability"),
  }));
  const angles = Number(slider.max) / Number(slider.step) + 1;

  function show() {
    const position = Number(slider.value) / Number(slider.step);
    output.textContent = `${slider.value}°`;
    slider.setAttribute("aria-valuetext", `${slider.value} degrees`);
    for (const picture of pictures) picture.style.transform = `translateY(${(-100 * position) / angles}%)`;
    for (const { row, answers, mark, verdict, label, probability } of rows) {
      const [name, percent, isRight] = answers[position];
      row.className = isRight ? "right" : "wrong";
      mark.textContent = isRight ? "✓" : "✗";
      verdict.textContent = isRight ? "right: " : "wrong: ";
      label.replaceChildren(...name.split(WORD_END).flatMap((word) => [word, document.createElement("wbr")]));
      probability.textContent = `${percent}\u00a0%`;
    }
  }

  let timer = 0;
  function stop() {
    clearInterval(timer);
    timer = 0;
    button.textContent = "Rotate once";
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    if (timer) return stop();
    let left = angles;
    button.textContent = "Stop";
    timer = setInterval(() => {
      slider.value = (Number(slider.value) + Number(slider.step)) % (angles * Number(slider.step));
      show();
      if (--left === 0) stop();
    }, 350);
  });
  slider.addEventListener("input", () => {
    if (timer) stop();
    show();
  });
  show(); // a browser may restore the position of the slider when the page is loaded again
})();

// Sort a table by the column whose heading is clicked: numbers from the largest, text from A, then the other way round.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells].filter((cell) => cell.scope === "col");
  const body = table.tBodies[0];
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value ?? cell.textContent.trim();
  };
  const compare = (first, second) => {
    const [a, b] = [Number.parseFloat(first), Number.parseFloat(second)];
    return a - b;
  };
  for (const heading of headings) {
    const column = heading.cellIndex;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const isText = column === 0;
      const wasDescending = heading.getAttribute("aria-sort") === "descending";
      const wasSorted = heading.hasAttribute("aria-sort");
      const descending = wasSorted ? !wasDescending : !isText;
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const entries = [...body.rows].map((row) => [valueOf(row, column), row]);
      const isMissing = ([value]) => !isText && Number.isNaN(Number.parseFloat(value));
      const present = entries.filter((entry) => !isMissing(entry));
      present.sort(([a], [b]) => (isText ? a.localeCompare(b, undefined, { numeric: true }) : compare(a, b)));
      if (descending) present.reverse();
      body.append(...[...present, ...entries.filter(isMissing)].map(([, row]) => row));
    });
  }
}

// A printed page shows what is folded on the screen.
window.addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
