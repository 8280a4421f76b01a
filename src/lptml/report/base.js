// Helpers that the parts of the page share: elements, colours, the tooltip, responsive SVG charts.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (selector) => document.querySelector(selector);
const tip = $("#tip");

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function draw(parent, tag, attributes = {}, text = null) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== null) node.textContent = text;
  parent.append(node);
  return node;
}

const shorten = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const number = (x, digits = 3) => (x === null || x === undefined ? "–" : Number(x).toLocaleString("en", { maximumSignificantDigits: digits }));
const percent = (x, digits = 1) => (x === null || x === undefined ? "–" : (100 * x).toFixed(digits) + "%");

const LIGHT = ["#2457c5", "#e07b39", "#14804a", "#b0368c", "#8a6d00", "#0b8a9a", "#7a4fd0", "#a33b2f", "#5b7d1e", "#566070"];
const DARK = ["#7aa7ff", "#ffa566", "#54d18c", "#f08bd0", "#e3c34d", "#4fd0e0", "#b79bff", "#ff9388", "#b5dd66", "#b4bfcb"];
const dark = () => document.documentElement.dataset.theme === "dark";
function classColour(code) {
  if (code < 0) return css("--base");
  if (code < LIGHT.length) return (dark() ? DARK : LIGHT)[code];
  return `hsl(${(code * 137.5) % 360} 60% ${dark() ? 68 : 42}%)`;
}
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function showTip(text, event) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
  const y = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18;
  tip.style.left = Math.max(8, x) + "px";
  tip.style.top = Math.max(8, y) + "px";
}
const hideTip = () => { tip.hidden = true; };
function explain(node, text) {
  node.addEventListener("pointermove", (event) => showTip(text, event));
  node.addEventListener("pointerleave", hideTip);
  node.setAttribute("aria-label", text);
}

// Everything that paints itself: repainted when its width or the theme changes.
const painters = [];
function repaint() { for (const paint of painters) paint(); }
function chart(id, height, paint) {
  const host = document.getElementById(id);
  if (!host) return;
  let width = 0;
  const run = () => {
    if (!width) return;
    host.replaceChildren();
    const h = typeof height === "function" ? height(width) : height;
    const svg = draw(host, "svg", { viewBox: `0 0 ${width} ${h}`, width, height: h, role: "img" });
    paint(svg, width, h);
  };
  new ResizeObserver(([entry]) => {
    const next = Math.round(entry.contentRect.width);
    if (next && next !== width) { width = next; run(); }
  }).observe(host);
  painters.push(run);
}

function niceTicks(low, high, count) {
  const step0 = (high - low) / Math.max(1, count) || 1;
  const power = 10 ** Math.floor(Math.log10(step0));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= step0 * 0.999);
  const ticks = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-9; t += step) ticks.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  return ticks;
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  repaint();
}
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
$("#theme").addEventListener("click", () => setTheme(dark() ? "light" : "dark"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
