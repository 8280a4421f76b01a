// The table of suspects: sort, filter, page through, download what is shown.
const T = D.table; // { columns: [{ name, kind, values }], point: [...] or null, suspect: [...], name }
const PAGE = 25;
const view = { sort: T.columns.findIndex((c) => c.kind === "suspicion"), down: true, page: 0, rows: [] };

function cellText(column, i) {
  const value = column.values[i];
  if (column.kind === "class") return className(value);
  if (column.kind === "row") return rowName(value);
  if (column.kind === "suspicion" || column.kind === "real") return value === null ? "" : value.toFixed(3);
  return String(value);
}
function sortKey(column, i) {
  const value = column.values[i];
  return column.kind === "class" || column.kind === "row" ? cellText(column, i) : value;
}
const compare = new Intl.Collator("en", { numeric: true }).compare;

function select() {
  const words = $("#filter").value.trim().toLowerCase();
  const label = $("#by-label").value;
  const least = Number($("#least").value);
  const only = $("#only").checked;
  const suspicion = T.columns.find((c) => c.kind === "suspicion");
  const group = T.columns.find((c) => c.filter);
  view.rows = [];
  for (let i = 0; i < T.n; i++) {
    if (only && !T.suspect[i]) continue;
    if (suspicion && suspicion.values[i] < least) continue;
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
const numeric = (column) => column.kind === "suspicion" || column.kind === "real";

function showPage() {
  const pages = Math.max(1, Math.ceil(view.rows.length / PAGE));
  view.page = Math.min(Math.max(0, view.page), pages - 1);
  const body = $("#table tbody");
  body.replaceChildren();
  for (const i of view.rows.slice(view.page * PAGE, (view.page + 1) * PAGE)) {
    const row = make("tr", { "data-row": i });
    for (const column of T.columns) row.append(cell(column, i));
    row.addEventListener("pointerenter", () => light(T.point ? T.point[i] : -1));
    row.addEventListener("click", () => {
      body.querySelectorAll(".pick").forEach((r) => r.classList.remove("pick"));
      row.classList.add("pick");
      light(T.point ? T.point[i] : -1);
    });
    body.append(row);
  }
  if (!view.rows.length) body.append(make("tr", {}, make("td", { colspan: T.columns.length, text: emptyText() })));
  $("#count").textContent = `${view.rows.length.toLocaleString("en")} of ${T.n.toLocaleString("en")} ${T.noun}, page ${view.page + 1} of ${pages}`;
  $("#prev").disabled = view.page === 0;
  $("#next").disabled = view.page >= pages - 1;
}

function emptyText() {
  if ($("#only").checked && !T.suspect.some((s) => s)) return "No suspects. Untick “suspects only” to see them all by suspicion.";
  return "No row matches.";
}

function cell(column, i) {
  const text = cellText(column, i);
  const td = make("td", { class: numeric(column) ? "num" : "", title: text });
  if (column.kind === "class" && column.values[i] >= 0) {
    const dot = make("span", { class: "dot" });
    dot.style.background = classColour(column.values[i]);
    td.append(dot);
  }
  if (column.kind === "suspicion") {
    const fill = make("i");
    fill.style.width = `${100 * column.values[i]}%`;
    td.append(make("span", { class: "meter" }, fill));
  }
  td.append(text);
  return td;
}

function download() {
  const rows = [T.columns.map((c) => c.name), ...view.rows.map((i) => T.columns.map((c) => cellText(c, i)))];
  const url = URL.createObjectURL(new Blob([csvText(rows)], { type: "text/csv;charset=utf-8" }));
  make("a", { href: url, download: T.file }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function fillLabels() {
  const group = T.columns.find((c) => c.filter);
  const list = $("#by-label");
  list.append(make("option", { value: "", text: group ? `any ${group.name.toLowerCase()}` : "any" }));
  if (!group) { list.hidden = true; return; }
  const seen = new Set();
  for (let i = 0; i < T.n; i++) seen.add(cellText(group, i));
  for (const name of [...seen].sort(compare)) list.append(make("option", { value: name, text: name }));
}

fillLabels();
head();
select();
painters.push(showPage);
let waiting = 0;
$("#filter").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(select, 80); });
$("#by-label").addEventListener("change", select);
$("#only").addEventListener("change", select);
$("#least").addEventListener("input", () => { $("#least-out").textContent = Number($("#least").value).toFixed(2); select(); });
$("#prev").addEventListener("click", () => { view.page--; showPage(); });
$("#next").addEventListener("click", () => { view.page++; showPage(); });
$("#download").addEventListener("click", download);
