// The two scatter plots: one canvas each, the same point lit in both, a grid of buckets to find the nearest dot.
const P = D.points;
const hidden = new Set();
let ringsShown = true;
let lit = -1; // the point under the pointer, or picked in the table
const isSuspect = new Uint8Array(P.n);
for (const i of P.suspects) isSuspect[i] = 1;
const rowName = (i) => (P.names ? P.names[i] : String(i + 1));
const className = (code) => (code < 0 ? "–" : D.meta.classes[code]);
const order = Array.from({ length: P.n }, (_, i) => i).sort((a, b) => isSuspect[a] - isSuspect[b]); // suspects on top

function describe(i) {
  const lines = [`row ${rowName(i)}`];
  if (P.label) lines.push(`label ${className(P.label[i])}`);
  if (P.suspicion) lines.push(`suspicion ${P.suspicion[i].toFixed(2)}` + (isSuspect[i] && P.suggested ? `, looks like ${className(P.suggested[i])}` : ""));
  return lines.join("\n");
}

class Scatter {
  constructor(id, coordinates) {
    this.canvas = document.getElementById(id);
    this.xy = coordinates; // x0, y0, x1, y1, ... in 0..10000
    this.reset();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.canvas.addEventListener("pointermove", (e) => this.move(e));
    this.canvas.addEventListener("pointerdown", (e) => { if (e.pointerType === "mouse") this.drag = { x: e.clientX, y: e.clientY }; this.move(e); });
    addEventListener("pointerup", () => { this.drag = null; });
    this.canvas.addEventListener("pointerleave", () => { hideTip(); light(-1); });
    this.canvas.addEventListener("dblclick", () => { this.reset(); this.paint(); });
    this.canvas.addEventListener("wheel", (e) => { e.preventDefault(); this.zoom(e.deltaY < 0 ? 1.2 : 1 / 1.2, e); }, { passive: false });
    painters.push(() => this.paint());
  }
  reset() { this.k = 1; this.tx = 0; this.ty = 0; }
  resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const box = this.canvas.getBoundingClientRect();
    this.w = box.width; this.h = box.height;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint();
  }
  place(i) {
    const pad = 14;
    const x = pad + (this.xy[2 * i] / 10000) * (this.w - 2 * pad);
    const y = this.h - pad - (this.xy[2 * i + 1] / 10000) * (this.h - 2 * pad);
    return [x * this.k + this.tx, y * this.k + this.ty];
  }
  zoom(factor, event) {
    const box = this.canvas.getBoundingClientRect();
    const px = event ? event.clientX - box.left : this.w / 2;
    const py = event ? event.clientY - box.top : this.h / 2;
    const k = Math.min(400, Math.max(1, this.k * factor));
    this.tx = px - ((px - this.tx) * k) / this.k;
    this.ty = py - ((py - this.ty) * k) / this.k;
    this.k = k;
    if (k === 1) this.reset();
    this.paint();
  }
  visible(i) { return !(P.label && hidden.has(P.label[i])); }
  paint() {
    if (!this.w) return;
    const g = this.canvas.getContext("2d");
    g.clearRect(0, 0, this.w, this.h);
    this.cells = new Map();
    const radius = P.n > 5000 ? 1.8 : P.n > 800 ? 2.6 : 3.8;
    const colours = new Map();
    g.globalAlpha = P.n > 2000 ? 0.6 : 0.85;
    for (const i of order) {
      if (!this.visible(i)) continue;
      const [x, y] = this.place(i);
      if (x < -8 || y < -8 || x > this.w + 8 || y > this.h + 8) continue;
      const code = P.label ? P.label[i] : -1;
      if (!colours.has(code)) colours.set(code, classColour(code));
      g.fillStyle = colours.get(code);
      g.beginPath(); g.arc(x, y, radius, 0, 6.2832); g.fill();
      const cell = (x >> 4) + "," + (y >> 4);
      if (this.cells.has(cell)) this.cells.get(cell).push(i); else this.cells.set(cell, [i]);
    }
    g.globalAlpha = 1;
    if (ringsShown) {
      g.strokeStyle = css("--ring");
      g.lineWidth = P.suspects.length > 300 ? 0.8 : 1.6;
      g.globalAlpha = P.suspects.length > 300 ? 0.55 : 1;
      for (const i of P.suspects) {
        if (!this.visible(i)) continue;
        const [x, y] = this.place(i);
        g.beginPath(); g.arc(x, y, radius + 3.2, 0, 6.2832); g.stroke();
      }
    }
    g.globalAlpha = 1;
    if (lit >= 0) {
      const [x, y] = this.place(lit);
      g.strokeStyle = css("--ink"); g.lineWidth = 2.4;
      g.beginPath(); g.arc(x, y, radius + 6, 0, 6.2832); g.stroke();
    }
  }
  nearest(px, py) {
    let best = -1, least = 196;
    for (let cx = (px >> 4) - 1; cx <= (px >> 4) + 1; cx++) {
      for (let cy = (py >> 4) - 1; cy <= (py >> 4) + 1; cy++) {
        for (const i of this.cells.get(cx + "," + cy) || []) {
          const [x, y] = this.place(i);
          const d = (x - px) ** 2 + (y - py) ** 2;
          if (d <= least) { least = d; best = i; }
        }
      }
    }
    return best;
  }
  move(event) {
    if (this.drag && event.buttons) {
      this.tx += event.clientX - this.drag.x; this.ty += event.clientY - this.drag.y;
      this.drag = { x: event.clientX, y: event.clientY };
      hideTip(); this.paint();
      return;
    }
    const box = this.canvas.getBoundingClientRect();
    const i = this.nearest(event.clientX - box.left, event.clientY - box.top);
    light(i);
    if (i >= 0) showTip(describe(i), event); else hideTip();
  }
}

const plots = [new Scatter("before", P.before), new Scatter("after", P.after)];
function light(i) {
  if (i === lit) return;
  lit = i;
  for (const plot of plots) plot.paint();
}
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => {
    const factor = Number(button.dataset.zoom);
    for (const plot of plots) { if (factor) plot.zoom(factor); else { plot.reset(); plot.paint(); } }
  });
}

function legend() {
  const host = $("#legend");
  host.replaceChildren();
  const chip = (mark, text, on, toggle) => {
    const button = make("button", { type: "button", class: "chip", "aria-pressed": String(on) }, mark, text);
    button.addEventListener("click", () => { toggle(); legend(); for (const plot of plots) plot.paint(); });
    host.append(button);
  };
  if (P.label) {
    D.meta.classes.forEach((name, code) => {
      const mark = make("i");
      mark.style.background = classColour(code);
      chip(mark, name, !hidden.has(code), () => { if (hidden.has(code)) hidden.delete(code); else hidden.add(code); });
    });
  }
  if (P.suspects.length) chip(make("i", { class: "ring" }), "suspect", ringsShown, () => { ringsShown = !ringsShown; });
}
legend();
painters.push(legend);
