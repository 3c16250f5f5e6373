"use strict";
const values = JSON.parse(document.getElementById("values").textContent);
const find = selector => document.querySelector(selector);

/** An element with a class, text and children. Text is never parsed as HTML. */
function make(tag, className = "", ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** A duration in ns, three figures. */
function time(ns) {
  const [unit, scale] = unitOf(ns);
  return three(ns / scale) + " " + unit;
}
const UNITS = [["ns", 1], ["us", 1e3], ["ms", 1e6]];
const unitOf = ns => UNITS.find(([, scale]) => Math.abs(ns) < 999.5 * scale) || ["s", 1e9];
const three = value => Math.abs(value) >= 99.95 || value === 0 ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 9.995 ? 1 : 2);
const percent = share => share == null ? "-" : three(100 * share) + " %";
const milliseconds = ms => ms == null ? "-" : ms.toFixed(2);

// ---- summary, steps, lines --------------------------------------------------------------------------------------------

function summary() {
  const trace = values.trace;
  if (trace) {
    const devices = trace.devices.map(device => device.name || "device " + device.id).join(", ");
    find("#recorded").textContent = [devices, trace.events.toLocaleString("en") + " events", time(1e6 * trace.span_ms)].filter(Boolean).join(" · ");
  }
  const cell = (figure, label) => find("#summary").append(make("div", "", make("b", "", figure), make("span", "", label)));
  if (values.step_ms != null) cell(time(1e6 * values.step_ms), `a step; ${values.steps.length} were recorded`);
  if (values.device_busy != null) cell(percent(values.device_busy), "of the steps the device worked");
  if (values.total_saving_ms != null)
    cell(time(1e6 * values.total_saving_ms), `saved per step if no read waits${values.step_ms ? ", " + percent(values.total_saving_ms / values.step_ms) : ""}`);
  if (values.fidelity != null) cell(values.fidelity < 1e-4 ? "< 0.01 %" : percent(values.fidelity), "error of the replay: how far the prices can be trusted");
  if (values.verdict) find("#summary").append(make("div", "verdict", values.verdict));
}

function steps() {
  if (!values.steps.length) return find("#steps").remove();
  const sorted = values.steps.map(step => step.ms).sort((a, b) => a - b);
  const longest = Math.min(sorted[sorted.length - 1], 2 * sorted[sorted.length >> 1]);  // a first step that compiles dwarfs the others
  for (const step of values.steps) {
    const busy = make("i");
    busy.style.height = `${step.ms ? 100 * Math.min(1, step.busy_ms / step.ms) : 0}%`;
    const bar = make("button", "", busy);
    bar.style.height = `${longest ? Math.min(100, Math.max(2, 100 * step.ms / longest)) : 2}%`;
    bar.title = `step ${step.index}: ${time(1e6 * step.ms)}, the device works ${time(1e6 * step.busy_ms)} of it`;
    bar.setAttribute("aria-label", bar.title);
    bar.addEventListener("click", () => view && view.show(1e6 * step.start_ms - values.timeline.origin, 1e6 * (step.start_ms + step.ms) - values.timeline.origin));
    find(".bars").append(bar);
  }
}

function lines() {
  if (!values.lines.length) {
    find("#lines table").replaceWith(make("p", "", "The host waited for the device nowhere in this recording."));
    return;
  }
  const priced = values.lines.some(line => line.share_ms != null);
  const heads = ["", "reads", "blocked ms", "idle after ms", ...(priced ? ["saved alone ms", "saved last ms", "share ms", "of a step"] : [])];
  find("#lines table").append(make("thead", "", make("tr", "", ...heads.map(head => make("th", "", head)))));
  const body = make("tbody");
  for (const line of values.lines) {
    const share = line.share_ms != null && values.step_ms ? line.share_ms / values.step_ms : null;
    const row = make("tr", share == null ? "" : share >= .05 ? "much" : share < .005 ? "nothing" : "");
    const name = line.path ? `${line.path}:${line.line}${line.function && ` ${line.function}()`}` : line.module ? `in ${line.module}` : "no line known";
    const go = make("button", "", name);
    go.title = "show the first wait of this line in the timeline";
    go.addEventListener("click", () => view && view.goTo(line));
    const place = make("td", "", make("div", "place", go, make("span", "op", line.op)));
    if (line.code) place.append(make("code", "", line.code));
    const about = (line.function && "somewhere in this function; ") + (line.fallback ? "the device has no such operator: the CPU ran it" : line.rule || "no rule knows this line");
    if (!line.fix) place.append(make("div", "rule", about));
    else place.append(make("details", "", make("summary", "rule", `${about}: ${line.fix.title} (${line.fix.safety})`), ...rewrite(line.fix)));
    row.append(place, ...[three(line.count), milliseconds(line.blocked_ms), milliseconds(line.idle_after_ms)].map(text => make("td", "", text)));
    if (priced) {
      row.append(...[line.saved_alone_ms, line.saved_last_ms].map(ms => make("td", "", milliseconds(ms))));
      row.append(make("td", "share", milliseconds(line.share_ms)), make("td", "share", percent(share)));
    }
    body.append(row);
  }
  find("#lines table").append(body);
  find("#lines .legend").textContent = "Blocked is how long the call held the host: neither what it costs nor what fixing it saves. "
    + "Idle is how long the device then had nothing to do."
    + (priced ? " Alone: saved if only this line is fixed; last: if all others were fixed before it; share: its fair part of what fixing all of them saves (Shapley)." : "");
}

function rewrite(fix) {
  const parts = fix.changes ? [make("p", "", fix.changes)] : [];
  if (fix.diff) {
    const kind = line => line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
    parts.push(make("pre", "", ...fix.diff.trimEnd().split("\n").map(line => make("span", kind(line), line + (kind(line) ? "" : "\n")))));
  }
  return parts;
}

function rest() {
  const cold = values.findings.filter(finding => !finding.ran);
  if (!cold.length) find("#findings").remove();
  for (const finding of cold) find("#findings ul").append(make("li", "", `${finding.path}:${finding.line}  ${finding.rule}: ${finding.message}`));
  const notes = [...values.notes, ...(values.timeline ? values.timeline.notes : [])];
  if (!notes.length) find("#notes").remove();
  for (const note of notes) find("#notes ul").append(make("li", "", note));
}

// ---- timeline ---------------------------------------------------------------------------------------------------------

const ROW = 16, RULER = 24, GAP = 22, MARGIN = 150;
let view = null;

async function unpack(line) {
  const packed = Uint8Array.from(atob(line.columns), letter => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const n = line.events;
  return {
    start: new Float64Array(buffer, 0, n), duration: new Float32Array(buffer, 8 * n, n),
    name: new Uint32Array(buffer, 12 * n, n), kind: new Uint8Array(buffer, 16 * n, n),
  };
}

class Timeline {
  constructor(canvas, line, columns) {
    Object.assign(this, {canvas, line, ...columns, from: 0, to: line.end, under: -1, selected: -1, asked: false});
    this.rows = [];
    let top = RULER, bottom = RULER, lane = -1;
    for (const [number, depth, first, count] of line.rows) {
      if (number !== lane) {
        lane = number;
        top = bottom + GAP;
        this.rows.push({label: line.lanes[lane].label, y: top - 7});
      }
      this.rows.push({first, last: first + count, y: top + depth * ROW});
      bottom = top + (depth + 1) * ROW;
    }
    this.height = bottom + 8;
    this.waits = [];
    for (let i = 0; i < line.events; i++) if (line.names[this.name[i]].startsWith("host waits ")) this.waits.push(i);
    this.waits.sort((a, b) => this.start[a] - this.start[b]);
    canvas.style.height = this.height + "px";
    this.listen();
    new ResizeObserver(() => this.ask()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.ask());
    this.ask();
  }

  /** Draw before the next frame, once however often it is asked for. */
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  show(from, to) {
    const least = 50, width = Math.min(Math.max(to - from, least), 1.1 * this.line.end + least);
    const middle = (from + to) / 2;
    const begin = Math.min(Math.max(middle - width / 2, -.05 * this.line.end), 1.05 * this.line.end - width / 2);
    this.from = begin;
    this.to = begin + width;
    this.ask();
  }

  zoom(factor, x = this.canvas.clientWidth / 2) {
    const at = this.time(x);
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  move(share) { const d = (this.to - this.from) * share; this.show(this.from + d, this.to + d); }
  time(x) { return this.from + Math.max(0, x - MARGIN) / (this.canvas.clientWidth - MARGIN) * (this.to - this.from); }

  /** The first event of a row that ends after a time: events of a row are sorted and do not overlap. */
  after(row, t) {
    let low = row.first, high = row.last;
    while (low < high) { const middle = (low + high) >> 1; if (this.start[middle] + this.duration[middle] <= t) low = middle + 1; else high = middle; }
    return low;
  }

  draw() {
    const {canvas} = this, scale = devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.width = width * scale;
    canvas.height = this.height * scale;
    const c = canvas.getContext("2d"), style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(name).trim();
    c.scale(scale, scale);
    c.clearRect(0, 0, width, this.height);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    const perNs = (width - MARGIN) / (this.to - this.from), x = t => MARGIN + (t - this.from) * perNs;
    this.ruler(c, width, x, colour);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.drawn = 0;
    for (const row of this.rows) {
      if (row.label !== undefined) { c.fillStyle = colour("--faint"); c.fillText(row.label, 4, row.y, 420); continue; }
      this.drawRow(c, row, x, perNs, width, dark, colour);
    }
    canvas.dataset.drawn = this.drawn;
    canvas.dataset.from = this.from;
    canvas.dataset.to = this.to;
  }

  drawRow(c, row, x, perNs, width, dark, colour) {
    const pixel = 1 / perNs;
    for (let i = this.after(row, this.from); i < row.last && this.start[i] < this.to;) {
      const left = Math.max(MARGIN, x(this.start[i])), right = Math.min(width, x(this.start[i] + this.duration[i]));
      const wide = Math.max(1, right - left);
      c.fillStyle = this.colour(i, dark, colour);
      c.fillRect(left, row.y, wide > 3 ? wide - .5 : wide, ROW - 2);
      this.drawn++;
      if (i === this.selected || i === this.under) { c.strokeStyle = colour("--text"); c.strokeRect(left + .5, row.y + .5, wide - 1, ROW - 3); }
      if (wide > 30) {
        c.save();
        c.beginPath(); c.rect(left, row.y, wide - 2, ROW); c.clip();
        c.fillStyle = dark ? "#fff" : "#111";
        c.fillText(this.line.names[this.name[i]], left + 3, row.y + ROW / 2 - 1);
        c.restore();
      }
      // many events in one pixel are drawn as one
      const next = this.start[i] + this.duration[i];
      i = wide <= 1 ? Math.max(i + 1, this.after(row, Math.max(next, this.start[i] + pixel))) : i + 1;
    }
  }

  colour(i, dark, colour) {
    const kind = this.line.kinds[this.kind[i]], name = this.line.names[this.name[i]];
    if (name.startsWith("host waits ") || kind === "read") return colour("--wait");
    if (kind === "step") return dark ? "#3b4652" : "#cfd8e0";
    let hash = 7;
    for (let k = 0; k < Math.min(name.length, 40); k++) hash = (hash * 31 + name.charCodeAt(k)) % 997;
    const device = kind === "kernel" || kind === "copy" || kind === "fill";
    return `hsl(${device ? 90 + hash % 90 : 200 + hash % 70} ${device ? 45 : 35}% ${dark ? 32 + hash % 8 : 72 + hash % 8}%)`;
  }

  ruler(c, width, x, colour) {
    const raw = (this.to - this.from) / Math.max(3, (width - MARGIN) / 120), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= raw);
    const [unit, scale] = unitOf(Math.max(Math.abs(this.from), Math.abs(this.to)));
    const digits = Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
    c.fillStyle = colour("--faint");
    c.strokeStyle = colour("--line");
    for (let t = Math.ceil(this.from / step) * step; t < this.to; t += step) {
      c.beginPath(); c.moveTo(x(t), RULER); c.lineTo(x(t), this.height); c.stroke();
      c.fillText(`${(t / scale).toFixed(digits)} ${unit}`, x(t) + 3, 12);
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    const row = this.rows.find(row => row.label === undefined && py >= row.y && py < row.y + ROW);
    if (!row || px < MARGIN) return -1;
    const near = (this.to - this.from) / (this.canvas.clientWidth - MARGIN), t = this.time(px);
    const i = this.after(row, t - near);
    return i < row.last && this.start[i] <= t + near ? i : -1;
  }

  say(i) {
    this.canvas.dataset.under = i < 0 ? "" : this.line.names[this.name[i]];
    find("#under").textContent = i < 0 ? "" : `${this.line.names[this.name[i]]} · ${this.line.kinds[this.kind[i]]} · ${time(this.duration[i])} · at ${time(this.start[i])}`;
  }

  select(i) {
    if (i === undefined || i < 0) return;
    this.selected = i;
    const around = Math.max(this.duration[i], 1000);
    this.show(this.start[i] - 1.5 * around, this.start[i] + 2.5 * around);
    this.say(i);
  }

  /** The next (1) or the previous (-1) wait. */
  wait(way) {
    if (!this.waits.length) return;
    const at = this.waits.indexOf(this.selected);
    const near = this.waits.findIndex(i => this.start[i] >= this.from);
    const next = at >= 0 ? at + way : near < 0 ? this.waits.length - 1 : near;
    this.select(this.waits[Math.min(Math.max(next, 0), this.waits.length - 1)]);
  }

  goTo(line) {
    const file = line.path ? line.path.replace(/^.*[\\/]/, "") + ":" + line.line + " " : "";
    const ops = line.op.split(", ");
    this.select(this.waits.find(i => ops.some(op => this.line.names[this.name[i]].endsWith(": " + file + op))));
    this.canvas.scrollIntoView({block: "center"});
    this.canvas.focus({preventScroll: true});
  }

  listen() {
    const {canvas} = this;
    let held = null;
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(event.deltaX / canvas.clientWidth);
      else this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), event.offsetX);
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => { held = event.clientX; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { held = null; });
    canvas.addEventListener("pointermove", event => {
      if (held !== null) { this.move((held - event.clientX) / (canvas.clientWidth - MARGIN)); held = event.clientX; return; }
      const i = this.at(event);
      if (i !== this.under) { this.under = i; this.say(i < 0 ? this.selected : i); this.ask(); }
    });
    canvas.addEventListener("dblclick", event => this.select(this.at(event)));
    const keys = {
      ArrowLeft: () => this.move(-.2), ArrowRight: () => this.move(.2), a: () => this.move(-.2), d: () => this.move(.2),
      "+": () => this.zoom(.6), "=": () => this.zoom(.6), "-": () => this.zoom(1 / .6), w: () => this.zoom(.6), s: () => this.zoom(1 / .6),
      n: () => this.wait(1), p: () => this.wait(-1), 0: () => this.show(0, this.line.end), Enter: () => this.select(this.under),
    };
    canvas.addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}

summary();
steps();
lines();
rest();
if (!values.timeline) find("#timeline").remove();
else unpack(values.timeline).then(columns => {
  view = new Timeline(find("canvas"), values.timeline, columns);
  document.body.dataset.ready = "yes";
}, error => find("canvas").replaceWith(make("p", "", "The timeline cannot be shown: " + error)));
