// CSV as 'tigranet predict --csv' writes it.

/** Quote text that a spreadsheet would execute as a formula. */
export function quoteFormula(text) {
  return /^'*[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
}

function cell(value) {
  if (typeof value === "number") return Number.isInteger(value) ? value.toFixed(1) : String(value);
  const text = quoteFormula(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Return the text of a file with a header and one line per row. */
export function csvOf(columns, rows) {
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return lines.map((values) => `${values.map(cell).join(",")}\n`).join("");
}

/** Let the browser save a text as a file. */
export function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
