// Rows of text as CSV. What a spreadsheet would execute stands behind an apostrophe, as text does there.
function csvText(rows) {
  const formula = (text) => /^\s*[=+\-@＝＋－＠]/.test(text) && Number.isNaN(Number(text));
  const quoted = (text) => (!text || /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  return rows.map((row) => row.map((text) => quoted(formula(text) ? "'" + text : text)).join(",") + "\n").join("");
}
