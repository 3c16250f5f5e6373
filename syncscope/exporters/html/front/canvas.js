import {colour, short, time, unitOf} from "./dom.js";

const ROW = 17, RULER = 26, BAND = 18, HEAD = 20, LEAST = 50, SHALLOW = 7;
const PALETTE = {kernel: [152, 42], copy: [205, 55], fill: [190, 35], wait: [16, 85], op: [222, 28], annotation: [48, 55], python: [265, 35], call: [215, 14], compile: [330, 40], sync: [0, 0]};

/** The timeline's picture: which part is seen, and how it is drawn. Everything is drawn anew for each frame, as many rectangles as
there are pixels and not events. */
export class Canvas {
  constructor(box, canvas, spacer, events, steps, told) {
    Object.assign(this, {box, canvas, spacer, events, steps, told, from: 0, to: events.end || 1, under: -1, selected: -1, range: null, found: null, arrows: false, asked: false, open: new Set(), shades: {}});
    this.layout();
    this.listen();
    new ResizeObserver(() => { this.layout(); this.ask(); }).observe(box);
    box.addEventListener("scroll", () => this.ask());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.ask());
  }

  /** Where each lane and each row is, from the top of all of them. */
  layout() {
    this.margin = this.box.clientWidth < 600 ? 64 : 150;
    this.rows = [];
    this.heads = [];
    let y = 0, lane = -1, base = 0, hidden = 0;
    const close = () => { if (lane >= 0) { this.heads.at(-1).hidden = hidden; y += 5; } };
    for (const row of this.events.rows) {
      if (row.lane !== lane) {
        close();
        lane = row.lane;
        hidden = 0;
        this.heads.push({lane, label: this.events.lanes[lane].label, y});
        base = y += this.margin < 100 ? HEAD : 0;
      }
      if (row.depth >= SHALLOW && !this.open.has(lane)) { hidden++; continue; }
      const at = base + row.depth * ROW;
      this.rows.push({row, y: at});
      y = Math.max(y, at + ROW);
      this.heads.at(-1).bottom = y;
    }
    close();
    this.total = y + 4;
    this.spacer.style.setProperty("height", `${this.total + RULER + BAND}px`);
    this.box.style.setProperty("height", `${Math.min(560, this.total + RULER + BAND + 2)}px`);
  }

  /** Draw before the next frame, once however often it is asked for. */
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  show(from, to) {
    const end = this.events.end || 1, width = Math.min(Math.max(to - from, LEAST), 1.1 * end + LEAST), middle = (from + to) / 2;
    const begin = Math.min(Math.max(middle - width / 2, -.05 * end), 1.05 * end - width / 2);
    this.from = begin;
    this.to = begin + width;
    this.ask();
  }

  zoom(factor, x = (this.canvas.clientWidth + this.margin) / 2) {
    const at = this.time(x);
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  move(share) { const d = (this.to - this.from) * share; this.show(this.from + d, this.to + d); }
  time(x) { return this.from + Math.max(0, x - this.margin) / (this.canvas.clientWidth - this.margin) * (this.to - this.from); }

  draw() {
    const {canvas, events} = this, scale = devicePixelRatio || 1, width = this.box.clientWidth, height = this.box.clientHeight;
    if (!width) return;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.setProperty("height", `${height}px`);
    }
    const c = this.c = canvas.getContext("2d");
    this.style = {text: colour("--text"), faint: colour("--faint"), line: colour("--line"), ground: colour("--ground"), accent: colour("--accent"), band: colour("--band"), wait: colour("--use-wait")};
    this.dark = colour("--dark") === "1";
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.fillStyle = this.style.ground;
    c.fillRect(0, 0, width, height);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.perNs = (width - this.margin) / (this.to - this.from);
    this.top = RULER + BAND - this.box.scrollTop;
    this.wide = width;
    this.drawn = 0;
    c.save();
    c.beginPath(); c.rect(0, RULER + BAND, width, height); c.clip();
    this.grid(height);
    c.save();
    c.beginPath(); c.rect(this.margin, RULER + BAND, width, height); c.clip();
    for (const {row, y} of this.rows) {
      const at = y + this.top;
      if (at + ROW >= RULER + BAND && at <= height) this.drawRow(row, at);
    }
    this.drawArrows();
    this.drawRange(height);
    c.restore();
    this.labels(height);
    c.restore();
    this.ruler(width);
    this.told.view(this.from, this.to);
    Object.assign(canvas.dataset, {drawn: this.drawn, from: this.from, to: this.to, under: this.under < 0 ? "" : events.nameOf(this.under), selected: this.selected < 0 ? "" : events.nameOf(this.selected)});
  }

  x(t) { return this.margin + (t - this.from) * this.perNs; }

  drawRow(row, y) {
    const {c, events, wide} = this, pixel = 1 / this.perNs;
    for (let i = events.after(row, this.from); i < row.last && events.start[i] < this.to;) {
      const left = this.x(events.start[i]), right = Math.min(wide, this.x(events.over(i)));
      if (right - left < 1.5) {  // many in a pixel are one bar, as high as they cover it
        const until = events.start[i] + Math.max(pixel, events.duration[i]), next = Math.max(i + 1, events.from(row, until, i));
        const share = Math.min(1, (events.spent[next] - events.spent[i]) / Math.max(pixel, events.start[next - 1] + events.duration[next - 1] - events.start[i]));
        const high = Math.max(3, (ROW - 2) * share);
        c.fillStyle = this.shade(i);
        c.fillRect(left, y + ROW - 2 - high, Math.max(1, right - left), high);
        this.drawn++;
        if (this.found || i === this.selected) this.mark(i, next, left, y);
        i = next;
        continue;
      }
      const begin = Math.max(this.margin, left), room = right - begin;
      c.fillStyle = this.shade(i);
      c.fillRect(begin, y, room > 3 ? room - .5 : room, ROW - 2);
      this.drawn++;
      if (room > 34) this.name(i, begin, y, room);
      if (i === this.selected || i === this.under) { c.strokeStyle = this.style.text; c.lineWidth = i === this.selected ? 2 : 1; c.strokeRect(begin + .5, y + .5, room - 1, ROW - 3); }
      i++;
    }
  }

  mark(first, last, left, y) {
    for (let i = first; i < last; i++) if (i === this.selected || this.found?.has(i)) { this.c.fillStyle = i === this.selected ? this.style.text : this.style.accent; this.c.fillRect(left, y, 2, ROW - 2); return; }
  }

  name(i, left, y, room) {
    const {c, events} = this, text = events.kindOf(i) === "kernel" ? short(events.nameOf(i)) : events.nameOf(i), most = Math.floor(room / 5);
    c.save();
    c.beginPath(); c.rect(left, y, room - 2, ROW); c.clip();
    c.globalAlpha = this.found && !this.found.has(i) ? .5 : 1;
    c.fillStyle = this.dark ? "#fff" : "#111";
    c.fillText(text.length > most ? text.slice(0, most) : text, left + 4, y + ROW / 2 - .5);
    c.restore();
  }

  shade(i) {
    const {events} = this, kind = events.kindOf(i), name = events.name[i];
    const [hue, full] = PALETTE[kind] || [0, 0], spread = (name * 2654435761 >>> 0) % 997 / 997;
    if (this.found && !this.found.has(i)) return `hsl(${hue} 5% ${this.dark ? 26 : 88}%)`;
    if (kind === "wait") return this.style.wait;
    const key = 2 * (32 * name + events.kind[i]) + this.dark, lightness = this.dark ? 30 + 14 * spread : 74 + 12 * spread;
    return this.shades[key] ||= `hsl(${Math.round(hue + 24 * (spread - .5))} ${this.dark ? full * .75 : full}% ${Math.round(lightness)}%)`;
  }

  drawArrows() {
    const {c, events} = this, places = new Map(this.rows.map(({row, y}) => [row, y + this.top + ROW / 2 - 1]));
    const arrow = (from, fromTime, to, toTime, style) => {
      const [y1, y2] = [places.get(events.row(from)), places.get(events.row(to))];
      if (y1 === undefined || y2 === undefined) return;
      const [x1, x2] = [this.x(fromTime), this.x(toTime)], bend = Math.max(12, Math.min(60, Math.abs(x2 - x1) / 2));
      if (Math.max(x1, x2) < this.margin || Math.min(x1, x2) > this.wide) return;
      c.strokeStyle = c.fillStyle = style;
      c.lineWidth = 1.4;
      c.beginPath(); c.moveTo(x1, y1); c.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2); c.stroke();
      c.beginPath(); c.moveTo(x2, y2); c.lineTo(x2 - 6, y2 - 3.5); c.lineTo(x2 - 6, y2 + 3.5); c.fill();
      this.pointed = (this.pointed || 0) + 1;
    };
    this.pointed = 0;
    const one = i => {
      if (i < 0) return;
      if (events.kind[i] === events.WAIT) { if (events.link[i] >= 0) arrow(events.link[i], events.over(events.link[i]), i, events.over(i), this.style.wait); }
      else if (events.link[i] >= 0) arrow(events.link[i], events.start[events.link[i]], i, events.start[i], this.style.accent);
      else for (const work of events.launched(i).slice(0, 50)) arrow(i, events.start[i], work, events.start[work], this.style.accent);
    };
    for (const i of new Set([this.selected, this.under])) one(i);
    if (this.arrows) for (const {row} of this.rows) {
      if (this.pointed > 400 || events.lanes[row.lane].device < 0 && !events.lanes[row.lane].waits) continue;
      const first = events.after(row, this.from), last = events.from(row, this.to, first);
      for (let i = first; i < last && last - first < 400; i++) one(i);
    }
    this.canvas.dataset.arrows = this.pointed;
  }

  drawRange(height) {
    if (!this.range) return;
    const [a, b] = this.range.map(t => this.x(t));
    this.c.fillStyle = this.style.accent;
    this.c.globalAlpha = .14;
    this.c.fillRect(a, 0, b - a, height);
    this.c.globalAlpha = 1;
    this.c.fillRect(a, 0, 1, height);
    this.c.fillRect(b, 0, 1, height);
  }

  labels(height) {
    const {c} = this;
    for (const {label, y, bottom, hidden} of this.heads) {
      const at = y + this.top;
      if (bottom + this.top < RULER || at > height) continue;
      c.fillStyle = this.style.line;
      c.fillRect(0, at - 3, this.wide, 1);
      c.save();
      c.beginPath(); c.rect(0, at - 2, this.margin < 100 ? this.wide : this.margin - 6, Math.max(ROW, bottom - y)); c.clip();
      c.fillStyle = this.style.faint;
      const stays = this.margin < 100 ? at + 9 : Math.min(Math.max(at + 8, RULER + BAND + 8), bottom + this.top - 9);
      c.fillText(label, 6, stays);
      if (hidden && bottom - y > 2 * ROW) c.fillText(`▸ ${hidden} more levels`, 6, stays + 15);
      c.restore();
    }
  }

  grid(height) {
    const {c} = this;
    c.strokeStyle = this.style.line;
    c.lineWidth = 1;
    for (const t of this.marks().times) { const at = Math.round(this.x(t)) + .5; if (at < this.margin) continue; c.beginPath(); c.moveTo(at, RULER); c.lineTo(at, height); c.stroke(); }
  }

  marks() {
    const raw = (this.to - this.from) / Math.max(2, (this.wide - this.margin) / 120), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= raw), times = [];
    for (let t = Math.ceil(this.from / step) * step; t < this.to; t += step) times.push(t);
    return {step, times};
  }

  ruler(width) {
    const {c} = this, {step, times} = this.marks(), [unit, scale] = unitOf(Math.max(Math.abs(this.from), Math.abs(this.to)));
    const digits = Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
    c.fillStyle = this.style.ground;
    c.fillRect(0, 0, width, RULER + BAND);
    c.fillStyle = this.style.faint;
    for (const t of times) if (this.x(t) > this.margin - 1) c.fillText(`${(t / scale).toFixed(digits)} ${unit}`, this.x(t) + 3, 13);
    c.fillText("time", 6, 13);
    if (this.steps.length) c.fillText("steps", 6, RULER + BAND / 2);
    c.save();
    c.beginPath(); c.rect(this.margin, RULER, width, BAND); c.clip();
    for (const {from, to, label} of this.steps) {
      const a = this.x(from), b = this.x(to);
      if (b < this.margin || a > width) continue;
      c.fillStyle = this.style.band;
      c.fillRect(a, RULER, Math.max(1, b - a - 1), BAND - 3);
      if (b - a > 24) { c.fillStyle = this.style.text; c.fillText(label, Math.max(a, this.margin) + 4, RULER + BAND / 2 - 1); }
    }
    c.restore();
    c.fillStyle = this.style.line;
    c.fillRect(0, RULER + BAND - 1, width, 1);
    if (this.range) { const [a, b] = this.range.map(t => Math.max(this.margin, this.x(t))); c.fillStyle = this.style.accent; c.globalAlpha = .2; c.fillRect(a, 0, b - a, RULER); c.globalAlpha = 1; if (b - a > 50) { c.fillStyle = this.style.text; c.fillText(time(this.range[1] - this.range[0]), a + 4, 13); } }
  }

  /** The event at a place of the page; -1 is none. */
  at(event) {
    const box = this.canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    if (px < this.margin || py < RULER + BAND) return -1;
    const found = this.rows.find(({y}) => py >= y + this.top && py < y + this.top + ROW);
    if (!found) return -1;
    const near = (this.to - this.from) / (this.canvas.clientWidth - this.margin), t = this.time(px), i = this.events.after(found.row, t - near);
    return i < found.row.last && this.events.start[i] <= t + near ? i : -1;
  }

  /** Bring an event into view, as wide as it is worth, and say what it is. */
  select(i, closer = true) {
    if (i === undefined || i < 0) return;
    this.selected = i;
    const {events} = this, row = events.row(i), around = Math.max(events.duration[i], 1000);
    if (closer) this.show(events.start[i] - 1.5 * around, events.start[i] + 2.5 * around);
    if (!this.rows.some(one => one.row === row)) { this.open.add(row.lane); this.layout(); }
    const place = this.rows.find(one => one.row === row), room = this.box.clientHeight - RULER - BAND;
    if (place && (place.y < this.box.scrollTop || place.y > this.box.scrollTop + room - ROW)) this.box.scrollTop = Math.max(0, place.y - room / 2);
    this.told.selected(i);
    this.ask();
  }

  listen() {
    const {canvas} = this, held = new Map();
    let begun = null, pinch = 0;
    canvas.addEventListener("wheel", event => {
      if (event.ctrlKey || event.metaKey || event.altKey) this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), event.offsetX);
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move((event.deltaX || event.deltaY) / canvas.clientWidth);
      else return;
      event.preventDefault();
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => {
      held.set(event.pointerId, event.clientX);
      canvas.setPointerCapture(event.pointerId);
      const y = event.clientY - canvas.getBoundingClientRect().top;
      begun = {x: event.clientX, time: this.time(event.offsetX), range: event.shiftKey || y < RULER, moved: false};
      pinch = 0;
    });
    const end = event => {
      held.delete(event.pointerId);
      if (!begun || held.size) return;
      if (!begun.moved) {
        const head = this.heads.find(one => event.offsetX < this.margin && event.offsetY >= one.y + this.top - 3 && event.offsetY < one.bottom + this.top);
        const step = event.offsetY >= RULER && event.offsetY < RULER + BAND && this.steps.find(one => this.time(event.offsetX) >= one.from && this.time(event.offsetX) < one.to);
        if (head) { if (!this.open.delete(head.lane)) this.open.add(head.lane); this.layout(); }
        else if (step) this.show(step.from, step.to);
        else { this.range = null; this.told.range(null); const i = this.at(event); if (i >= 0) this.select(i, false); else { this.selected = -1; this.told.selected(-1); } }
        this.ask();
      }
      begun = null;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", event => { held.delete(event.pointerId); begun = null; });
    canvas.addEventListener("pointermove", event => {
      if (held.has(event.pointerId) && begun) {
        const before = held.get(event.pointerId);
        held.set(event.pointerId, event.clientX);
        if (held.size === 2) {
          const [a, b] = held.values(), wide = Math.abs(a - b);
          if (pinch) this.zoom(pinch / Math.max(10, wide), (a + b) / 2 - canvas.getBoundingClientRect().left);
          pinch = wide;
          begun.moved = true;
        } else {
          if (Math.abs(event.clientX - begun.x) > 3) begun.moved = true;
          if (begun.moved && begun.range) { const t = this.time(event.offsetX); this.range = [Math.min(begun.time, t), Math.max(begun.time, t)]; this.told.range(this.range); this.ask(); }
          else if (begun.moved) this.move((before - event.clientX) / (canvas.clientWidth - this.margin));
        }
        return;
      }
      const i = this.at(event);
      if (i !== this.under) { this.under = i; this.told.under(i); this.ask(); }
    });
    canvas.addEventListener("pointerleave", () => { this.under = -1; this.told.under(-1); this.ask(); });
    canvas.addEventListener("dblclick", event => this.select(this.at(event)));
    const sideways = way => { const i = this.selected, row = i >= 0 && this.events.row(i); if (row && i + way >= row.first && i + way < row.last) this.select(i + way, false); };
    const keys = {
      ArrowLeft: () => this.move(-.2), ArrowRight: () => this.move(.2), a: () => this.move(-.2), d: () => this.move(.2),
      "+": () => this.zoom(.6), "=": () => this.zoom(.6), "-": () => this.zoom(1 / .6), w: () => this.zoom(.6), s: () => this.zoom(1 / .6),
      n: () => this.wait(1), p: () => this.wait(-1), 0: () => this.show(0, this.events.end), ",": () => sideways(-1), ".": () => sideways(1),
      Enter: () => this.select(this.selected), l: () => this.selected >= 0 && this.select(this.events.link[this.selected] >= 0 ? this.events.link[this.selected] : this.events.launched(this.selected)[0]),
      Escape: () => { this.range = null; this.selected = -1; this.told.range(null); this.told.selected(-1); this.ask(); },
    };
    canvas.addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  /** The next (1) or the previous (-1) wait. */
  wait(way) {
    const {waits, start} = this.events;
    if (!waits.length) return;
    const at = waits.indexOf(this.selected), near = waits.findIndex(i => start[i] >= this.from);
    const next = at >= 0 ? at + way : near < 0 ? waits.length - 1 : near;
    this.select(waits[Math.min(Math.max(next, 0), waits.length - 1)]);
  }
}
