// Rows of text as CSV. What a spreadsheet would execute stands behind an apostrophe, as text does there.
function csvText(rows) {
  const formula = (text) => /^'*\s*[=+\-@＝＋－＠]/.test(text) && Number.isNaN(Number(text.replace(/^'+/, "")));
  const quoted = (text) => (!text || /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  return rows.map((row) => row.map((text) => quoted(formula(text) ? "'" + text : text)).join(",") + "\n").join("");
}
function offer(name, rows) {
  const url = URL.createObjectURL(new Blob([csvText(rows)], { type: "text/csv;charset=utf-8" }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
