// The table of suspects: sort, filter, page through, open, download what is shown.
const R = D.review || null; // what review.js needs; a page about pairs has none
const decisions = new Map(); // row: { decision, label }
const WORDS = { keep: "keep", change: "change to", unsure: "cannot say" };
const T = D.table; // { columns: [{ name, kind, values }], point: [...] or null, suspect: [...], name }
const PAGE = 25;
const view = { sort: T.columns.findIndex((c) => c.kind === "suspicion"), down: true, page: 0, rows: [], open: null };

// The label that the file has; a page about decisions that were made already was learned with others.
const fileLabel = (i) => (R && R.given[i] !== undefined ? R.given[i] : className(P.label[i]));

function cellText(column, i) {
  const value = column.values[i];
  if (column.kind === "class") return className(value);
  if (column.kind === "given") return fileLabel(i);
  if (column.kind === "row") return rowName(value);
  if (column.kind === "suspicion") return value > 0.999 && value < 1 ? value.toFixed(5) : value.toFixed(3);
  if (column.kind === "real") return value === null ? "" : value.toFixed(3);
  if (column.kind === "decision") {
    const made = decisions.get(i);
    return made ? (made.decision === "change" ? `change to ${made.label}` : WORDS[made.decision]) : "";
  }
  return String(value);
}
function sortKey(column, i) {
  const value = column.values[i];
  if (column.kind === "suspicion" && T.columns[0].kind === "rank") return -T.columns[0].values[i]; // equal when rounded
  return ["class", "given", "row", "decision"].includes(column.kind) ? cellText(column, i) : value;
}
const compare = new Intl.Collator("en", { numeric: true }).compare;

function select() {
  const words = $("#filter").value.trim().toLowerCase();
  const label = $("#by-label").value;
  const looks = R ? $("#by-suggested").value : "", decision = R ? $("#by-decision").value : "";
  const only = $("#only").checked;
  const group = T.columns.find((c) => c.filter);
  view.rows = [];
  for (let i = 0; i < T.n; i++) {
    if (only && !T.suspect[i]) continue;
    if (looks && className(R.suggested[i]) !== looks) continue;
    if (decision && (decisions.has(i) ? decisions.get(i).decision : "none") !== decision) continue;
    if (label && group && cellText(group, i) !== label) continue;
    if (words && !T.columns.some((c) => cellText(c, i).toLowerCase().includes(words))) continue;
    view.rows.push(i);
  }
  const column = T.columns[view.sort];
  const sign = view.down ? -1 : 1;
  const keys = new Map(view.rows.map((i) => [i, sortKey(column, i)]));
  view.rows.sort((a, b) => {
    const x = keys.get(a), y = keys.get(b);
    return sign * (typeof x === "string" ? compare(x, y) : x - y) || a - b;
  });
  view.page = 0;
  if (!view.rows.includes(view.open)) view.open = null;
  showPage();
}

function head() {
  const row = make("tr");
  T.columns.forEach((column, j) => {
    const sorted = view.sort === j;
    const arrow = sorted ? (view.down ? " ↓" : " ↑") : "";
    const button = make("button", { type: "button", text: column.name + arrow });
    button.addEventListener("click", () => {
      view.down = sorted ? !view.down : column.kind === "suspicion" || column.kind === "real";
      view.sort = j;
      head(); select();
    });
    row.append(make("th", { scope: "col", class: numeric(column) ? "num" : "", "aria-sort": sorted ? (view.down ? "descending" : "ascending") : "none" }, button));
  });
  $("#table thead").replaceChildren(row);
}
const numeric = (column) => column.kind === "suspicion" || column.kind === "real" || column.kind === "rank";

function showPage() {
  const pages = Math.max(1, Math.ceil(view.rows.length / PAGE));
  view.page = Math.min(Math.max(0, view.page), pages - 1);
  const body = $("#table tbody");
  body.replaceChildren();
  for (const i of view.rows.slice(view.page * PAGE, (view.page + 1) * PAGE)) {
    const open = R && view.open === i;
    const row = make("tr", { "data-row": i, class: open ? "pick" : "" });
    if (R) row.setAttribute("aria-expanded", String(open));
    for (const column of T.columns) row.append(cell(column, i));
    row.addEventListener("pointerenter", () => light(T.point ? T.point[i] : -1));
    row.addEventListener("click", () => {
      if (R) { if (open) { view.open = null; showPage(); } else openRow(i); return; }
      body.querySelectorAll(".pick").forEach((r) => r.classList.remove("pick"));
      row.classList.add("pick");
      light(T.point ? T.point[i] : -1);
    });
    body.append(row);
    if (open) body.append(make("tr", { class: "opened" }, make("td", { colspan: T.columns.length }, detail(i))));
  }
  if (!view.rows.length) body.append(make("tr", {}, make("td", { colspan: T.columns.length, text: emptyText() })));
  $("#count").textContent = `${view.rows.length.toLocaleString("en")} of ${T.n.toLocaleString("en")} ${T.noun}, page ${view.page + 1} of ${pages}`;
  $("#prev").disabled = view.page === 0;
  $("#next").disabled = view.page >= pages - 1;
}

function emptyText() {
  if ($("#only").checked && !T.suspect.some((s) => s)) return R ? "No label looks wrong. Untick “likely wrong only” to see them all by suspicion." : "No suspects. Untick “suspects only” to see them all by suspicion.";
  return "No row matches.";
}

function cell(column, i) {
  const text = cellText(column, i);
  const td = make("td", { class: `${column.kind} ${numeric(column) ? "num" : ""}`, title: text });
  if (column.kind === "class" || column.kind === "given") {
    const dot = make("span", { class: "dot" });
    dot.style.background = classColour(D.meta.classes.indexOf(text));
    td.append(dot);
  }
  if (column.kind === "suspicion") {
    const fill = make("i");
    fill.style.width = `${100 * bar(column.values[i])}%`;
    td.append(make("span", { class: "meter" }, fill));
  }
  td.append(text);
  return td;
}

// Probabilities saturate, their odds do not: half a bar is even odds, a whole one ten thousand to one.
function bar(p) { return Math.min(1, Math.max(0, 0.5 + Math.log10(Math.max(p, 1e-9) / Math.max(1 - p, 1e-9)) / 8)); }

function download() {
  offer(T.file, [T.columns.map((c) => c.name), ...view.rows.map((i) => T.columns.map((c) => cellText(c, i)))]);
}

function fillLabels() {
  const group = T.columns.find((c) => c.filter), list = $("#by-label");
  const options = (host, any, pairs) => host.append(make("option", { value: "", text: any }), ...pairs.map(([value, text]) => make("option", { value, text })));
  const seen = new Set();
  for (let i = 0; i < T.n; i++) seen.add(cellText(group, i));
  const names = [...seen].sort(compare).map((name) => [name, R ? `given ${name}` : name]);
  options(list, R ? "any given label" : `any ${group.name.toLowerCase()}`, names);
  if (!R) return;
  options($("#by-suggested"), "any suggestion", D.meta.classes.map((name) => [name, `looks like ${name}`]));
  options($("#by-decision"), "any decision", [["none", "undecided"], ...Object.entries(WORDS).map(([key, word]) => [key, word.replace("change to", "change")])]);
}

fillLabels();
head();
if (!R) select(); // else after the decisions are read
painters.push(showPage);
let waiting = 0;
$("#filter").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(select, 80); });
$("#by-label").addEventListener("change", select);
$("#only").addEventListener("change", select);
$("#prev").addEventListener("click", () => { view.page--; showPage(); });
$("#next").addEventListener("click", () => { view.page++; showPage(); });
$("#download").addEventListener("click", download);
