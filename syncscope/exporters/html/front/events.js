/** The events of a recording as columns, unpacked from what `_timeline.py` packed. Times are ns since the first event. */
export class Events {
  static async unpack(facts, text) {
    const letters = atob(text), packed = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Events(facts, new Uint8Array(await new Response(stream).arrayBuffer()));
  }

  constructor(facts, bytes) {
    const {events: n, rows, lanes, names, kinds, end, origin, columns} = facts;
    Object.assign(this, {length: n, lanes, names, kinds, end, origin});
    let offset = 0;
    const column = (name, values) => {
      for (let byte = 0; byte < columns[name]; byte++, offset += n) {
        const scale = 256 ** byte;
        for (let i = 0; i < n; i++) if (bytes[offset + i]) values[i] += bytes[offset + i] * scale;
      }
      return values;
    };
    this.start = column("start", new Float64Array(n));
    this.duration = column("duration", new Float64Array(n));
    this.name = column("name", new Uint32Array(n));
    this.kind = column("kind", new Uint8Array(n));
    const zigzag = column("link", new Float64Array(n));
    this.link = new Int32Array(n);
    for (let i = 0, number = 0; i < n; i++) {
      number += zigzag[i] % 2 ? -(zigzag[i] + 1) / 2 : zigzag[i] / 2;
      this.link[i] = number - 1;
    }
    this.rows = rows.map(([lane, depth, first, count]) => ({lane, depth, first, last: first + count}));
    this.spent = new Float64Array(n + 1);  // the durations added up, row after row
    for (const row of this.rows) {
      for (let i = row.first, t = 0; i < row.last; i++) this.start[i] = t += this.start[i];
      for (let i = row.first; i < row.last; i++) this.spent[i + 1] = this.spent[i] + this.duration[i];
    }
    this.WAIT = kinds.indexOf("wait");
    this.waits = [];
    for (let i = 0; i < n; i++) if (this.kind[i] === this.WAIT) this.waits.push(i);
    this.waits.sort((a, b) => this.start[a] - this.start[b]);
  }

  over(i) { return this.start[i] + this.duration[i]; }
  nameOf(i) { return this.names[this.name[i]]; }
  kindOf(i) { return this.kinds[this.kind[i]]; }
  isDevice(i) { return this.lanes[this.row(i).lane].device >= 0; }

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

  /** The last work of any queue of the device that ended before a time; -1 is none. */
  lastWork(t, lane = null) {
    let best = -1;
    for (const row of this.rows) {
      if (lane !== null ? row.lane !== lane : this.lanes[row.lane].device < 0) continue;
      const next = this.after(row, t);
      if (next > row.first && (best < 0 || this.over(next - 1) > this.over(best))) best = next - 1;
    }
    return best;
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
