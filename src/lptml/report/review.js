// The review: a row opens to its reasons; keep, change or cannot say; undo; storage; corrections.csv.
const storage = R ? `lptml-review:${R.digest || `${document.title}:${P.n}`}:${R.column}${D.server ? ":waiting" : ""}` : "";
const past = []; // what undo goes back to: lists of [row, decision before]

function store(value) { try { localStorage.setItem(storage, JSON.stringify(value)); return true; } catch { return false; } }
function stored() { try { return JSON.parse(localStorage.getItem(storage)) || []; } catch { return []; } }
const fileRow = (i) => (R.rows ? R.rows[i] : i + 1);
const likely = R ? P.suspects : [];

function decide(rows, decision, label = "") {
  const step = [];
  for (const i of rows) {
    step.push([i, decisions.get(i) || null]);
    if (decision) decisions.set(i, { decision, label: decision === "change" ? label || className(R.suggested[i]) : "" });
    else decisions.delete(i);
  }
  if (decision) past.push(step);
  keep(step.map(([i]) => i));
}
function undo() {
  const step = past.pop();
  if (!step) return;
  for (const [i, before] of step) { if (before) decisions.set(i, before); else decisions.delete(i); }
  keep(step.map(([i]) => i));
  openRow(step[0][0]);
}
function correction(i) {
  const made = decisions.get(i) || { decision: "undo", label: "" };
  return { row: fileRow(i), key: P.names ? P.names[i] : "", column: R.column, given: fileLabel(i), decision: made.decision, label: made.label, data: R.digest };
}

// Decisions are kept as soon as they are made: by the program that serves the page, or else by the browser.
let sending = Promise.resolve();
function keep(rows) {
  if (D.server) {
    const waiting = stored().concat(rows.map(correction));
    store(waiting);
    sending = sending.then(flush);
  } else {
    const whole = [...decisions].map(([i, made]) => [i, made.decision, made.label]);
    saved(store(whole) ? `Kept in this browser; download corrections.csv${R.command ? `, then: ${R.command}` : " to apply them"}.` : "This browser keeps nothing: download before you leave.");
  }
  counted();
  showPage();
}
async function flush() {
  const waiting = stored();
  if (!waiting.length) return;
  try {
    const answer = await fetch("decisions", { method: "POST", headers: { "Content-Type": "application/json", "X-Lptml": "1" }, body: JSON.stringify(waiting) });
    if (!answer.ok) throw new Error(await answer.text());
    store(stored().slice(waiting.length));
    saved(`Saved to ${D.server.file}.`);
  } catch (problem) {
    saved(`Not saved (${problem.message}): if lptml review has ended, download corrections.csv before you close this page.`);
  }
}
function saved(text) { $("#saved").textContent = text; }

function counted() {
  const made = likely.filter((i) => decisions.has(i)).length, left = likely.length - made;
  $("#done").max = Math.max(1, likely.length);
  $("#done").value = made;
  $("#left").textContent = likely.length ? `${made} of ${likely.length} likely wrong decided, ${left} left` : "No label looks wrong";
  $("#undo").disabled = !past.length;
  $("#accept").hidden = !left;
  $("#accept").textContent = `Change the ${left} left as suggested`;
  $("#corrections").disabled = !decisions.size;
}

function openRow(i) {
  view.open = i;
  const at = view.rows.indexOf(i);
  if (at >= 0) view.page = Math.floor(at / PAGE);
  showPage();
  light(i);
  const row = document.querySelector(`#table tr[data-row="${i}"]`);
  if (!row) return;
  const box = row.getBoundingClientRect();
  if (box.top < 0 || box.bottom + 320 > innerHeight) row.scrollIntoView({ block: "start" });
}
function step(by, undecided = false) {
  let at = view.rows.indexOf(view.open);
  for (at += by; at >= 0 && at < view.rows.length; at += by) {
    if (!undecided || !decisions.has(view.rows[at])) { openRow(view.rows[at]); return; }
  }
}
function answer(decision, label) {
  const i = view.open;
  if (i === null) { if (view.rows.length) openRow(view.rows[0]); return; }
  const after = view.rows.slice(view.rows.indexOf(i) + 1).find((j) => !decisions.has(j));
  decide([i], decision, label);
  if (after !== undefined) openRow(after);
}

function choice(text, key, pressed, act) {
  const button = make("button", { type: "button", "aria-pressed": String(pressed) }, text, make("kbd", { text: key }));
  button.addEventListener("click", (event) => { event.stopPropagation(); act(); });
  return button;
}
function detail(i) {
  const made = decisions.get(i) || {}, was = D.meta.classes.indexOf(fileLabel(i));
  const given = was < 0 ? P.label[i] : was, other = R.suggested[i] === given ? P.label[i] : R.suggested[i];
  const box = make("div", { class: "detail" });
  const why = [R.verdicts[R.verdict[i]]];
  if (R.outlying[i] > 3) why.push(`lies ${number(R.outlying[i], 2)} times as far out as usual`);
  box.append(make("p", {}, make("strong", { text: `Row ${rowName(i)}` }), ` is given as `, badge(given), ` and looks like `, badge(other), ` (${why.join("; ")}).`));
  const to = make("select", { "aria-label": "Change to" }), fresh = newClass();
  const typed = [...decisions.values()].map((each) => each.label).filter((name) => name && !D.meta.classes.includes(name));
  const names = [...new Set([className(other), ...D.meta.classes, ...typed])].filter((name) => name !== fileLabel(i));
  for (const name of names) to.append(make("option", { text: name + (name === className(other) ? " (suggested)" : "") }));
  to.append(make("option", { text: "a new class…" }));
  if (made.decision === "change") to.selectedIndex = names.indexOf(made.label);
  to.addEventListener("click", (event) => event.stopPropagation());
  to.addEventListener("change", () => {
    fresh.hidden = to.selectedIndex < names.length;
    if (fresh.hidden) answer("change", names[to.selectedIndex]);
    else fresh.focus();
  });
  box.append(make("div", { class: "bar answers" },
    choice(`Keep ${shorten(fileLabel(i), 24)}`, "k", made.decision === "keep", () => answer("keep")),
    choice(`Change to ${shorten(className(other), 24)}`, "c", made.decision === "change", () => answer("change", className(other))),
    choice("Cannot say", "u", made.decision === "unsure", () => answer("unsure")), make("label", {}, "or to ", to), fresh));
  const reasons = R.open[i];
  if (!reasons) { box.append(make("p", { class: "note", text: `Reasons are kept for the ${Object.keys(R.open).length} most suspicious rows.` })); return box; }
  box.append(values(i, given, other, reasons), neighbours(i, reasons));
  return box;
}
// The name of a class that the table has not had; Enter takes it.
function newClass() {
  const field = make("input", { type: "text", "aria-label": "Name of the new class", placeholder: "its name, then Enter", maxlength: 200, hidden: "" });
  field.addEventListener("click", (event) => event.stopPropagation());
  field.addEventListener("keydown", (event) => {
    const name = field.value.trim();
    if (event.key === "Enter" && name) answer(name === fileLabel(view.open) ? "keep" : "change", name);
  });
  return field;
}
function badge(code) {
  const dot = make("i");
  dot.style.background = classColour(code);
  return make("span", { class: "badge" }, dot, className(code));
}
function values(i, given, other, reasons) {
  const order = [...reasons.by, ...R.features.keys()].filter((f, k, all) => all.indexOf(f) === k);
  const few = Math.max(6, reasons.by.length), body = make("tbody");
  const show = (all) => {
    body.replaceChildren();
    for (const f of all ? order : order.slice(0, few)) {
      const own = R.values[i][f], [a, b] = [R.typical[given], R.typical[other]];
      const cells = [make("th", { scope: "row", text: R.features[f], title: R.features[f] }), make("td", { class: "num strong", text: number(own, 4) })];
      for (const q of [a, b]) cells.push(make("td", { class: "num", text: number(q[1][f], 4), title: `half of them from ${number(q[0][f], 4)} to ${number(q[2][f], 4)}` }));
      body.append(make("tr", { class: reasons.by.includes(f) ? "by" : "" }, ...cells, make("td", { class: "strip" }, strip(own, a, b, f, given, other))));
    }
  };
  show(false);
  const head = ["Feature", "This row", `Typical ${shorten(className(given), 16)}`, `Typical ${shorten(className(other), 16)}`, ""];
  const table = make("table", { class: "values" }, make("thead", {}, make("tr", {}, ...head.map((text, k) => make("th", { scope: "col", class: k && k < 4 ? "num" : "", text })))), body);
  const holder = make("div", {}, make("p", { class: "note", text: reasons.by.length ? `What speaks for the change: ${reasons.by.map((f) => R.features[f]).join(", ")}. Typical is the median of trusted rows.` : "Typical is the median of trusted rows." }), table);
  if (order.length > few) {
    const more = make("button", { type: "button", text: `All ${order.length} features` });
    more.addEventListener("click", (event) => { event.stopPropagation(); show(true); more.remove(); });
    holder.append(more);
  }
  return holder;
}
// The middle half of both classes, and a mark where the row lies.
function strip(own, a, b, f, given, other) {
  const ends = [own, a[0][f], a[2][f], b[0][f], b[2][f]], low = Math.min(...ends), high = Math.max(...ends);
  const x = (v) => 4 + ((v - low) / (high - low || 1)) * 112;
  const host = document.createElement("span"), svg = draw(host, "svg", { width: 120, height: 18, role: "img" });
  [[a, given, 3], [b, other, 10]].forEach(([q, code, y]) => draw(svg, "rect", { x: x(q[0][f]) - 1, width: Math.max(2, x(q[2][f]) - x(q[0][f])), y, height: 5, rx: 2, fill: classColour(code), "fill-opacity": 0.75 }));
  draw(svg, "line", { x1: x(own), x2: x(own), y1: 0, y2: 18, stroke: css("--ink"), "stroke-width": 2 });
  return host;
}
function neighbours(i, reasons) {
  const shown = (reasons.by.length ? reasons.by : [...R.features.keys()]).slice(0, 3);
  const rows = reasons.near.map((j) => make("tr", {}, make("td", { text: rowName(j) }), make("td", {}, badge(P.label[j])), ...shown.map((f) => make("td", { class: "num", text: number(R.values[j][f], 4) }))));
  if (!rows.length) return make("span");
  const head = ["Nearest trusted", "Label", ...shown.map((f) => R.features[f])];
  return make("div", { class: "scroll" }, make("table", { class: "near" }, make("thead", {}, make("tr", {}, ...head.map((text, k) => make("th", { scope: "col", class: k > 1 ? "num" : "" }, make("span", { text }))))), make("tbody", {}, ...rows)));
}

function confusionTable() {
  const C = D.confusion.counts, names = D.meta.classes, most = Math.max(1, ...C.flat());
  let shown = [...names.keys()];
  if (shown.length > 12) shown = shown.filter((k) => C[k].some((v) => v) || C.some((row) => row[k])); // the others are not confused
  if (shown.length > 40) shown = shown.slice(0, 40);
  $("#confusion-table thead").replaceChildren(make("tr", {}, make("th", {}, make("span", { text: "given \\ looks like" })), ...shown.map((k) => make("th", { scope: "col", class: "num" }, make("span", { text: names[k], title: names[k] }))), make("th", { class: "num" }, make("span", { text: "of" }))));
  $("#confusion-table tbody").replaceChildren(...shown.map((g) => make("tr", {}, make("th", { scope: "row" }, badge(g)), ...shown.map((s) => {
    const n = C[g][s], td = make("td", { class: "num" });
    if (g === s) { td.textContent = "·"; return td; }
    td.style.background = n ? `color-mix(in srgb, var(--ring) ${Math.round(12 + (48 * n) / most)}%, transparent)` : "";
    if (n) td.append(make("button", { type: "button", class: "cell", text: n, "aria-label": `${n} given as ${names[g]} that look like ${names[s]}`, onclick: () => { $("#by-label").value = names[g]; $("#by-suggested").value = names[s]; $("#only").checked = true; select(); $("#suspects").scrollIntoView(); } }));
    else td.textContent = "0";
    return td;
  }), make("td", { class: "num", text: D.confusion.members[g].toLocaleString("en") }))));
}

if (R) {
  const before = D.server ? R.decisions : [...R.decisions, ...stored()];
  for (const [i, decision, label] of before) if (i < P.n && decision in WORDS) decisions.set(i, { decision, label });
  confusionTable();
  painters.push(confusionTable);
  counted();
  if (D.server) sending = sending.then(flush);
  if (decisions.size) saved(D.server ? `Decisions so far are in ${D.server.file}.` : "Decisions so far were found in this browser.");
  select();
  $("#undo").addEventListener("click", undo);
  $("#accept").addEventListener("click", () => decide(likely.filter((i) => !decisions.has(i)), "change"));
  $("#corrections").addEventListener("click", () => {
    const rows = [...decisions.keys()].sort((a, b) => a - b).map(correction);
    const columns = ["row", "key", "column", "given", "decision", "label", "data"];
    offer("corrections.csv", [columns, ...rows.map((each) => columns.map((name) => String(each[name])))]);
  });
  $("#by-decision").addEventListener("change", select);
  $("#by-suggested").addEventListener("change", select);
  if ($("#refit")) $("#refit").addEventListener("click", async () => {
    $("#refit").disabled = true;
    saved("Learning again with these decisions…");
    await sending;
    try {
      const reply = await fetch("refit", { method: "POST", headers: { "X-Lptml": "1" } });
      if (!reply.ok) throw new Error(await reply.text());
      location.reload();
    } catch (problem) { saved(`Could not learn again: ${problem.message}`); $("#refit").disabled = false; }
  });
  if (D.server && D.server.changed) saved(D.server.changed);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const arrows = view.open !== null || $("#suspects").contains(event.target);
    const acts = { k: () => answer("keep"), c: () => answer("change"), u: () => answer("unsure"), z: undo };
    if (arrows) Object.assign(acts, { ArrowDown: () => step(1), ArrowUp: () => step(-1), Escape: () => { view.open = null; showPage(); } });
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
