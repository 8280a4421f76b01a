// The figures: accuracy, settings, feature weights and correlations, distances, the search; and the plain tables.
function fill(id, columns, rows) {
  const side = (v) => (typeof v === "number" || /%$/.test(v) ? "num" : "");
  const heads = columns.map((c, j) => make("th", { scope: "col", class: rows.length ? side(rows[0][j]) : "" }, make("span", { text: c })));
  $(`#${id} thead`).append(make("tr", {}, ...heads));
  for (const row of rows) $(`#${id} tbody`).append(make("tr", {}, ...row.map((v) => make("td", { class: side(v), text: typeof v === "number" ? number(v, 4) : v }))));
}

// One dot a row with its error bar; `scale` gives the ends of the axis and how a value is written.
function dots(id, rows, step, scale) {
  const { low, high, write, tick } = scale;
  chart(id, rows.length * step + 34, (svg, width, height) => {
    const left = Math.min(250, width * 0.44), right = width - 64, bottom = height - 26;
    const x = (v) => left + ((v - low) / (high - low)) * (right - left);
    for (const t of niceTicks(low, high, width < 500 ? 3 : 6)) {
      draw(svg, "line", { x1: x(t), x2: x(t), y1: 0, y2: bottom, class: t === 0 ? "axis" : "grid" });
      draw(svg, "text", { x: x(t), y: bottom + 18, "text-anchor": "middle" }, tick(t));
    }
    rows.forEach((r, i) => {
      const y = (i + 0.5) * step, colour = css(r.ours ? "--accent" : "--base");
      const inside = (v) => x(Math.min(high, Math.max(low, v)));
      const a = inside(r.low), b = inside(r.high), at = inside(r.mean);
      draw(svg, "text", { x: left - 12, y: y + 4, "text-anchor": "end", class: r.ours ? "strong" : "" }, shorten(r.name, Math.floor(left / (r.ours ? 7.6 : 6.6))));
      for (const [x1, x2, y1, y2] of [[a, b, y, y], [a, a, y - 6, y + 6], [b, b, y - 6, y + 6]]) draw(svg, "line", { x1, x2, y1, y2, stroke: colour, "stroke-width": 2.2 });
      explain(draw(svg, "circle", { cx: at, cy: y, r: 6, fill: colour }), `${r.name}: ${write(r.mean)}, from ${write(r.low)} to ${write(r.high)}`);
      draw(svg, "text", { x: Math.max(b, at + 7) + 8, y: y + 4, class: "strong" }, write(r.mean));
    });
  });
}
if (D.accuracy) {
  const rows = D.accuracy.rows, low = Math.max(0, Math.floor(20 * Math.min(...rows.map((r) => r.low)) - 0.5) / 20);
  const scale = { low, high: 1, write: percent, tick: (t) => percent(t, 0) };
  $("#given-caption").textContent = R ? "Agrees with the labels as given" : "ROC AUC of unseen pairs";
  dots("accuracy-chart", rows.filter((r) => r.against !== "trust"), 42, scale);
  if (R) dots("trust-chart", rows.filter((r) => r.against === "trust"), 42, scale);
}
if (D.cross_validation) {
  const C = D.cross_validation, best = C.score[0];
  const rows = C.values.slice(0, 24).map((v, i) => ({ name: C.parameters.length > 1 ? v.join(", ") : `${C.parameters[0]} ${v[0]}`, mean: 100 * (C.score[i] - best), low: 100 * (C.score[i] - best - C.error[i]), high: 100 * (C.score[i] - best + C.error[i]), ours: C.averaged[i] }));
  const low = Math.min(-1, ...rows.map((r) => r.low)), high = Math.max(0.5, ...rows.map((r) => r.high));
  const signed = (v) => (v > 0 ? "+" : v < 0 ? "−" : "") + Math.abs(v).toFixed(1);
  dots("cross-validation-chart", rows, 26, { low, high, write: signed, tick: (t) => number(t) });
  const cells = C.values.map((v, i) => [...v, percent(C.score[i], 2), percent(best - C.score[i], 2), percent(C.error[i], 2), C.averaged[i] ? "yes" : "no"]);
  fill("cross-validation-table", [...C.parameters, "Score", "Behind the best", "Standard error", "Averaged"], cells);
}

if (D.weights) {
  const W = D.weights;
  const most = Math.max(...W.values) || 1;
  chart("weights-chart", W.names.length * 22 + 6, (svg, width) => {
    const left = Math.min(170, width * 0.45);
    W.names.forEach((name, i) => {
      const y = i * 22 + 14;
      draw(svg, "text", { x: left - 8, y: y + 4, "text-anchor": "end" }, shorten(name, Math.floor(left / 6.8)));
      const w = (W.values[i] / most) * (width - left - 52);
      explain(draw(svg, "rect", { x: left, y: y - 7, width: Math.max(1, w), height: 14, rx: 3, fill: css("--accent") }), `${name}: ${percent(W.values[i])} of the squared distance`);
      draw(svg, "text", { x: left + w + 6, y: y + 4 }, percent(W.values[i]));
    });
  });
  // Rows as high as those of the weights beside them, so that the names there serve both.
  chart("correlation-chart", () => W.names.length * 22 + 6, (svg, width) => {
    const n = W.names.length, wide = Math.min(width / n, 60), high = 22;
    const ink = css("--ink"), plus = css("--similar"), minus = css("--dissimilar");
    W.correlation.forEach((row, i) => row.forEach((c, j) => {
      const box = draw(svg, "rect", { x: j * wide + 0.5, y: i * high + 3.5, width: Math.max(1, wide - 1), height: high - 1, fill: i === j ? ink : c >= 0 ? plus : minus, "fill-opacity": i === j ? 0.25 : Math.max(0.04, Math.abs(c)) });
      explain(box, `${W.names[i]} and ${W.names[j]}: ${c.toFixed(2)}`);
    }));
  });
}

if (D.distances) {
  const H = D.distances;
  const peak = Math.max(...H.similar, ...H.dissimilar) || 1;
  chart("distances-chart", 260, (svg, width, height) => {
    const left = 8, right = width - 8, bottom = height - 44, top = 34;
    const low = H.edges[0], high = H.edges[H.edges.length - 1];
    const x = (v) => left + ((v - low) / (high - low || 1)) * (right - left);
    const y = (v) => bottom - (v / peak) * (bottom - top);
    for (const t of niceTicks(low, high, width < 500 ? 4 : 8)) draw(svg, "text", { x: x(t), y: bottom + 18, "text-anchor": "middle" }, number(t));
    draw(svg, "text", { x: right, y: bottom + 38, "text-anchor": "end" }, "learned distance");
    draw(svg, "line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" });
    for (const [name, values] of [["dissimilar", H.dissimilar], ["similar", H.similar]]) {
      let path = `M${x(low)},${bottom}`;
      values.forEach((v, i) => { path += `L${x(H.edges[i])},${y(v)}L${x(H.edges[i + 1])},${y(v)}`; });
      draw(svg, "path", { d: path + `L${x(high)},${bottom}Z`, fill: css("--" + name), "fill-opacity": 0.42, stroke: css("--" + name), "stroke-width": 1.5 });
    }
    const sameBound = H.u !== null && Math.abs(x(H.u) - x(H.l)) < 18;
    for (const [name, v, anchor] of sameBound ? [[H.u === H.l ? "u = l" : "u, l", H.u, "middle"]] : [["u", H.u, "end"], ["l", H.l, "start"]]) {
      if (v === null || v < low || v > high) continue;
      draw(svg, "line", { x1: x(v), x2: x(v), y1: top - 10, y2: bottom, stroke: css("--ink"), "stroke-dasharray": "4 3", "stroke-width": 1.4 });
      draw(svg, "text", { x: x(v), y: top - 15, "text-anchor": anchor, class: "strong" }, `${name} = ${number(v)}`);
    }
    H.edges.slice(0, -1).forEach((edge, i) => {
      const strip = draw(svg, "rect", { x: x(edge), y: top, width: Math.max(1, x(H.edges[i + 1]) - x(edge)), height: bottom - top, fill: "transparent" });
      explain(strip, `distance ${number(edge)} to ${number(H.edges[i + 1])}\nsimilar ${percent(H.similar[i])}, dissimilar ${percent(H.dissimilar[i])}`);
    });
    ["similar", "dissimilar"].forEach((name, i) => {
      draw(svg, "rect", { x: left + i * 76, y: bottom + 28, width: 11, height: 11, rx: 3, fill: css("--" + name) });
      draw(svg, "text", { x: left + i * 76 + 17, y: bottom + 38 }, name);
    });
  });
}

if (D.history && D.history.best.length) {
  const S = D.history;
  let axis = "trial";
  const paintSearch = (svg, width, height) => {
    const xs = S[axis], left = 52, right = width - 12, bottom = height - 40, top = width < 640 ? 56 : 34;
    const values = [...S.best, S.final, S.lower ?? S.final, S.trivial ?? S.final];
    const high = Math.max(...values) * 1.06 || 1;
    const last = S.end[axis] || 1;
    const x = (v) => left + (v / last) * (right - left), y = (v) => bottom - (v / high) * (bottom - top);
    for (const t of niceTicks(0, high, 5)) {
      draw(svg, "line", { x1: left, x2: right, y1: y(t), y2: y(t), class: "grid" });
      draw(svg, "text", { x: left - 8, y: y(t) + 4, "text-anchor": "end" }, percent(t, high < 0.05 ? 1 : 0));
    }
    for (const t of niceTicks(0, last, width < 500 ? 3 : 6)) draw(svg, "text", { x: x(t), y: bottom + 18, "text-anchor": "middle" }, number(t));
    draw(svg, "text", { x: right, y: bottom + 35, "text-anchor": "end" }, axis === "trial" ? "trial" : "seconds");
    let path = "";
    S.best.forEach((v, i) => { path += i ? `H${x(xs[i])}V${y(v)}` : `M${x(xs[0])},${y(v)}`; });
    explain(draw(svg, "path", { d: path + `H${right}`, fill: "none", stroke: css("--accent"), "stroke-width": 2.2 }), "least violated share met so far");
    const lines = [["least met", S.best[S.best.length - 1], "--accent", "none"], [S.trivial_name, S.trivial, "--base", "2 3"], ["this metric", S.final, "--good", "none"], ["lower bound", S.lower, "--warn", "6 3"]];
    let at = 0, row = 0;
    for (const [name, v, colour, dash] of lines) {
      if (v === null || v === undefined) continue;
      if (name !== "least met") draw(svg, "line", { x1: left, x2: right, y1: y(v), y2: y(v), stroke: css(colour), "stroke-dasharray": dash, "stroke-width": 1.8 });
      const text = `${name} ${percent(v, 2)}`, wide = text.length * 6.6 + 40;
      if (at + wide > width) { at = 0; row++; }
      draw(svg, "line", { x1: at, x2: at + 20, y1: row * 20 + 8, y2: row * 20 + 8, stroke: css(colour), "stroke-dasharray": dash, "stroke-width": 2.4 });
      draw(svg, "text", { x: at + 26, y: row * 20 + 12 }, text);
      at += wide;
    }
  };
  chart("search-chart", 270, paintSearch);
  for (const button of document.querySelectorAll("[data-axis]")) {
    button.addEventListener("click", () => {
      axis = button.dataset.axis;
      document.querySelectorAll("[data-axis]").forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      repaint();
    });
  }
}

if (D.support) fill("support-table", D.support.columns, D.support.rows);
document.documentElement.dataset.ready = String(Math.round(performance.now()));
