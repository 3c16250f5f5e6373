import {painted} from "./dom.js";

/** The events of a recording as columns, unpacked from what `_timeline.py` packed. Times are ns since the first event. */
export class Events {
  /** Unpacks piece by piece, so that the page can be read and scrolled meanwhile. */
  static async unpack(facts, text) {
    await painted();
    const stream = new Blob([base64(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
    const events = new Events(facts), bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    let offset = 0;
    for (const [name, size] of Object.entries(facts.columns)) {
      await painted();
      offset = addPlanes(events[name], bytes, offset, size);
    }
    events.complete();
    return events;
  }

  constructor({events: n, rows, lanes, names, kinds, whys = [], end, origin}) {  // whys: none in the page of an older version, which TensorBoard may have kept
    Object.assign(this, {length: n, lanes, names, kinds, whys, end, origin});
    this.start = new Float64Array(n);
    this.duration = new Float64Array(n);
    this.name = new Uint32Array(n);
    this.kind = new Uint8Array(n);
    this.link = new Uint32Array(n);
    this.why = new Uint8Array(n);
    this.by = new Uint32Array(n);
    this.spent = new Float64Array(n + 1);  // the durations added up, row after row
    this.rows = rows.map(([lane, depth, first, count]) => ({lane, depth, first, last: first + count}));
    this.WAIT = kinds.indexOf("wait");
    this.waits = [];
  }

  /** What is written as a difference becomes what it is. */
  complete() {
    const {length: n, start, duration, kind, spent, waits, WAIT} = this;
    const present = this.present = new Uint8Array(this.kinds.length);  // by kind: whether there is any
    this.link = numbers(this.link);
    this.by = numbers(this.by);
    for (let i = 0; i < n; i++) {
      present[kind[i]] = 1;
      if (kind[i] === WAIT) waits.push(i);
    }
    for (const row of this.rows) {
      for (let i = row.first, t = 0; i < row.last; i++) {
        start[i] = t += start[i];
        spent[i + 1] = spent[i] + duration[i];
      }
    }
    waits.sort((a, b) => start[a] - start[b]);
  }

  over(i) { return this.start[i] + this.duration[i]; }
  nameOf(i) { return this.names[this.name[i]]; }
  kindOf(i) { return this.kinds[this.kind[i]]; }
  isDevice(i) { return this.lanes[this.row(i).lane].device >= 0; }

  whyOf(i) { return this.whys[this.why[i]]; }

  /** The event that held this one up; -1 is none. */
  holder(i) { return this.by[i] >= 0 ? this.by[i] : ["launch", "return"].includes(this.whyOf(i)) ? this.link[i] : -1; }

  /** The row of an event. */
  row(i) {
    let low = 0, high = this.rows.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (this.rows[middle].first <= i) low = middle; else high = middle - 1; }
    return this.rows[low];
  }

  /** The first event of a row that ends after a time: events of a row are sorted and do not overlap. */
  after(row, t, from = row.first) {
    let low = from, high = row.last;
    while (low < high) { const middle = (low + high) >> 1; if (this.start[middle] + this.duration[middle] <= t) low = middle + 1; else high = middle; }
    return low;
  }

  /** The first event of a row that begins at a time or later. */
  from(row, t, since = row.first) {
    let low = since, high = row.last;
    while (low < high) { const middle = (low + high) >> 1; if (this.start[middle] < t) low = middle + 1; else high = middle; }
    return low;
  }

  /** The event of a lane, one level above, in which this one is; -1 is none. */
  parent(i) {
    const {lane, depth} = this.row(i);
    const above = this.rows.find(row => row.lane === lane && row.depth === depth - 1);
    if (!above) return -1;
    const found = this.after(above, this.start[i]);
    return found < above.last && this.start[found] <= this.start[i] ? found : -1;
  }

  /** The device work that a call launched. */
  launched(call) {
    if (!this.works) {
      this.works = new Map();
      for (let i = 0; i < this.length; i++) if (this.link[i] >= 0 && this.kind[i] !== this.WAIT) {
        const known = this.works.get(this.link[i]);
        if (known) known.push(i); else this.works.set(this.link[i], [i]);
      }
    }
    return this.works.get(call) || [];
  }

  /** How long any event of these rows ran between two times. */
  covered(rows, from, to) {
    const spans = [];
    for (const row of rows) for (let i = this.after(row, from); i < row.last && this.start[i] < to; i++) spans.push([Math.max(from, this.start[i]), Math.min(to, this.over(i))]);
    spans.sort((a, b) => a[0] - b[0]);
    let sum = 0, reach = from;
    for (const [a, b] of spans) { sum += Math.max(0, b - Math.max(a, reach)); reach = Math.max(reach, b); }
    return sum;
  }

  /** What ran between two times, by name: `{name, kind, count, time, device}`, the longest first. */
  summary(from, to) {
    const found = new Map();
    for (const row of this.rows) {
      const device = this.lanes[row.lane].device >= 0;
      for (let i = this.after(row, from); i < row.last && this.start[i] < to; i++) {
        const key = this.name[i] * 32 + this.kind[i];
        let one = found.get(key);
        if (!one) found.set(key, one = {name: this.nameOf(i), kind: this.kindOf(i), count: 0, time: 0, device, example: i});
        one.count++;
        one.time += Math.min(to, this.over(i)) - Math.max(from, this.start[i]);
      }
    }
    return [...found.values()].sort((a, b) => b.time - a.time);
  }

  /** Events whose name holds all these words, by start. */
  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const wanted = this.names.map(name => { const low = name.toLowerCase(); return words.every(word => low.includes(word)); });
    const found = [];
    for (let i = 0; i < this.length; i++) if (wanted[this.name[i]]) found.push(i);
    return found.sort((a, b) => this.start[a] - this.start[b]);
  }
}

function base64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** Numbers of events, -1 is none, of what is 1 more and written as differences without a sign. */
function numbers(zigzag) {
  const found = new Int32Array(zigzag.length);
  for (let i = 0, number = 0; i < zigzag.length; i++) {
    number += zigzag[i] >>> 1 ^ -(zigzag[i] & 1);
    found[i] = number - 1;
  }
  return found;
}

/** Adds the bytes of numbers, all first ones, then all second ones, and so on; where the next column begins. Most of the higher ones
are 0, and four of those are skipped at once. */
function addPlanes(values, bytes, offset, size) {
  const n = values.length, whole = n >> 2;
  for (let byte = 0; byte < size; byte++, offset += n) {
    const plane = bytes.slice(offset, offset + n), words = new Uint32Array(plane.buffer, 0, whole), scale = 256 ** byte;
    for (let word = 0; word < whole; word++) {
      if (words[word]) for (let i = 4 * word; i < 4 * word + 4; i++) values[i] += plane[i] * scale;
    }
    for (let i = 4 * whole; i < n; i++) values[i] += plane[i] * scale;
  }
  return offset;
}
