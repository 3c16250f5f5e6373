import {editorLink} from "./editors.js";
import {source} from "./lines.js";
import {fixed, largest, make, msTime, percent, section, short, size, tail, three} from "./dom.js";

const COLUMNS = [
  ["host_ms", "host", "ms of the host: in the line's launches and waits, in the loader, and between the call before and these."],
  ["launches", "launches", "How often a step launches work there."],
  ["device_ms", "device", "ms of the device in what the line launched."],
  ["backward_ms", "backward", "ms of the device in what backward() launched for the line's operators."],
  ["idle_ms", "idle", "ms that the device had nothing to do, because the host had waited there or was there."],
  ["of", "of a step", "Device, backward and idle time: those of all lines add up to the step."],
];
const FIRST = 10;
const nameOf = one => one.path ? `${one.path}:${one.line}` : "no line known";

/** Where a step goes by line: a flame graph, a table, and the source with what each line takes in the gutter. */
export function byLine(model) {
  const known = (model.by_line || []).some(one => one.path && one.launches);
  if (!known) return null;
  const {parts, step_ms: step, host_ms: host, host_known, device_known} = model.page.by_line;
  const entries = model.by_line.map((one, number) => ({...one, ...parts[number], of: (one.device_ms + one.backward_ms + one.idle_ms) / step, number}));
  const per = model.steps.length ? "step" : "recording";
  const box = section("by-line", `Where a ${per} goes, by line`, `of ${msTime(step)}; ${percent(host_known)} of the host's time and ${percent(device_known)} of the device's have a line`);
  const body = make("tbody"), told = make("output", {class: "hidden", "aria-live": "polite"}), all = make("button", {type: "button", class: "link", onclick: () => { every = true; draw(); }});
  const filter = make("input", {type: "search", placeholder: "filter: path, function", "aria-label": "Filter lines", oninput: () => draw()});
  let sorted = {key: "of", down: true}, every = false;
  const opened = new Set(), most = largest(entries.map(one => one.of), 1e-9);
  const heads = COLUMNS.map(([key, name, title]) => make("th", {scope: "col", title, "aria-sort": "none", "data-key": key},
    make("button", {type: "button", onclick: () => { sorted = {key, down: sorted.key === key ? !sorted.down : true}; draw(); }}, name)));
  const open = number => { if (!opened.delete(number)) opened.add(number); every ||= entries.findIndex(one => one.number === number) >= FIRST; draw(); };

  function draw() {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = entries.filter(one => wanted.every(word => `${nameOf(one)} ${one.function} ${one.caller ? `${one.caller.path}:${one.caller.line}` : ""}`.toLowerCase().includes(word)));
    found.sort((a, b) => (sorted.down ? -1 : 1) * (a[sorted.key] - b[sorted.key]));
    for (const head of heads) head.setAttribute("aria-sort", head.dataset.key !== sorted.key ? "none" : sorted.down ? "descending" : "ascending");
    const shown = every || wanted.length ? found : found.slice(0, FIRST);
    body.replaceChildren(...shown.flatMap(one => [row(one), ...(opened.has(one.number) ? [more(one)] : [])]));
    all.hidden = shown.length === found.length;
    all.textContent = `${found.length - shown.length} more line${found.length - shown.length === 1 ? "" : "s"}`;
    told.textContent = `${shown.length} of ${entries.length} lines`;
    if (!shown.length) body.append(make("tr", {}, make("td", {colspan: COLUMNS.length + 1, class: "left"}, "no line matches")));
  }

  function row(one) {
    const code = one.path && source(model, one.path).find(([n]) => n === one.line);
    const button = one.path ? make("button", {type: "button", class: "spot", "aria-expanded": String(opened.has(one.number)), title: nameOf(one), onclick: () => open(one.number)}, make("span", {class: "file"}, `${tail(one.path)}:${one.line}`)) : make("span", {class: "bare"}, one.host_ms || one.device_ms || one.backward_ms ? "no line known" : "idle, unexplained");
    return make("tr", {class: one.of >= .05 ? "much" : one.of < .005 ? "nothing" : ""},
      make("td", {class: "left what", "data-label": "line"}, make("div", {}, button, one.function ? make("span", {class: "op"}, `${one.function}()`) : ""),
        code ? make("code", {class: "code"}, code[1].trim()) : "", one.caller ? make("div", {class: "about"}, `called from ${tail(one.caller.path)}:${one.caller.line}`) : ""),
      COLUMNS.map(([key, name, title]) => make("td", {"data-label": name, title, class: key},
        key === "of" ? [make("span", {class: "part-bar", "aria-hidden": "true"}, make("i", {style: {width: `${100 * one.of / most}%`}})), percent(one.of)] : key === "launches" ? three(one.launches) : fixed(one[key]))));
  }

  function more(one) {
    const times = [["in the driver", one.driver_ms], ["between calls", one.between_ms], ["waiting", one.waiting_ms], ["in the loader", one.loading_ms]].filter(([, ms]) => ms > 0);
    const since = one.since ? `, most of what is between since ${tail(one.since.path)}:${one.since.line}${one.runs ? `: ${one.runs.replaceAll("`", "")}` : ""}` : "";
    const link = editorLink(model.page.folder, one.path, one.line);
    return make("tr", {class: "more"}, make("td", {colspan: COLUMNS.length + 1, class: "left"}, make("div", {class: "details"},
      make("p", {}, `The host ${msTime(one.host_ms)}: ${times.map(([name, ms]) => `${msTime(ms)} ${name}`).join(", ") || "nothing"}${since}. ${one.bytes ? `The device moved ${size(one.bytes)} in copies and fills.` : ""}`, link ? [" ", link] : ""),
      one.kernels.length ? make("p", {class: "faint"}, `On the device: ${one.kernels.map(([name, ms]) => `${short(name)} ${msTime(ms)}`).join(", ")}`) : "",
      heat(model, entries, one, step) || make("p", {class: "faint"}, "Its source is not at hand."))));
  }

  box.append(flames(entries, host, step, number => { open(number); body.querySelector("tr.more")?.scrollIntoView({block: "nearest"}); }), make("div", {class: "tools"}, filter, told),
    make("table", {class: "takes"}, make("caption", {class: "hidden"}, "Where a step goes, by line"), make("thead", {}, make("tr", {}, make("th", {scope: "col", class: "left"}, "line"), heads)), body), all);
  draw();
  return box;
}

/** Source around a line, with what every line takes of a step in the gutter: the redder, the more. */
function heat(model, entries, here, step) {
  const texts = source(model, here.path).filter(([n]) => Math.abs(n - here.line) <= 7);
  if (!texts.length) return null;
  const taken = new Map();
  for (const one of entries) if (one.path === here.path) taken.set(one.line, (taken.get(one.line) || 0) + one.of);
  const most = largest([...taken.values()], 1e-9);
  return make("div", {class: "source", tabindex: 0, role: "region", "aria-label": `Source of ${here.path}`}, make("table", {}, make("tbody", {}, texts.map(([number, text]) => {
    const of = taken.get(number);
    return make("tr", {class: number === here.line ? "here" : null},
      make("td", {class: "gutter heat", title: of ? `${percent(of)} of a step, ${msTime(of * step)}` : null, style: of ? {"--heat": `${Math.round(8 + 62 * of / most)}%`} : {}}, of ? make("span", {}, percent(of)) : ""),
      make("td", {class: "number"}, String(number)), make("td", {class: "text"}, make("code", {}, text || " ")));
  }))));
}

const VIEWS = {host: ["the host's time", one => one.host_ms], device: ["the device's time", one => one.device_ms + one.backward_ms], idle: ["the device's idle time", one => one.idle_ms]};

/** A flame graph by stack of lines: the user's line, below it the libraries' lines that it led to. */
function flames(entries, host, step, go) {
  let view = "host";
  const plot = make("div", {class: "flames", role: "group", "aria-label": "Flame graph by line"});
  const buttons = Object.entries(VIEWS).map(([key, [words]]) => make("button", {type: "button", "data-key": key, onclick: () => { view = key; draw(); }}, words));
  function draw() {
    const value = VIEWS[view][1], total = entries.reduce((sum, one) => sum + value(one), 0) || 1;
    for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.key === view);
    const stacks = new Map();
    for (const one of entries) {
      if (!value(one)) continue;
      const outer = one.caller || (one.path ? {path: one.path, line: one.line} : null), key = outer ? `${outer.path}:${outer.line}` : "no line known";
      const of = stacks.get(key) || {outer, key, sum: 0, inner: []};
      of.sum += value(one);
      of.inner.push(one);
      stacks.set(key, of);
    }
    const files = new Map();
    for (const of of stacks.values()) {
      const file = of.outer ? of.outer.path : "", at = files.get(file) || {file, sum: 0, stacks: []};
      at.sum += of.sum;
      at.stacks.push(of);
      files.set(file, at);
    }
    const bar = (level, from, part, name, told, number) => part / total < .0005 ? "" : make(number === null ? "span" : "button", {class: `flame level-${level}`, type: number === null ? null : "button", title: `${told}: ${msTime(part)}, ${percent(part / total)}`, style: {left: `${100 * from / total}%`, width: `${100 * part / total}%`}, onclick: number === null ? null : () => go(number)}, name);
    const bars = [];
    let at = 0;
    for (const {file, sum, stacks: own} of [...files.values()].sort((a, b) => b.sum - a.sum)) {
      bars.push(bar(0, at, sum, file ? file.split(/[\\/]/).pop() : "no line known", file || "no line known", null));
      let from = at;
      for (const {outer, key, sum: part, inner} of own.sort((a, b) => b.sum - a.sum)) {
        const direct = inner.find(one => !one.caller);
        if (outer) bars.push(bar(1, from, part, String(outer.line), key, direct ? direct.number : null));
        let within = from;
        for (const one of inner.filter(one => one.caller).sort((a, b) => value(b) - value(a))) {
          bars.push(bar(2, within, value(one), `${one.path.split(/[\\/]/).pop()}:${one.line}`, nameOf(one), one.number));
          within += value(one);
        }
        from += part;
      }
      at += sum;
    }
    plot.classList.toggle("deep", entries.some(one => one.caller && value(one)));
    plot.replaceChildren(...bars.filter(Boolean));
  }
  draw();
  return make("figure", {class: "flame-graph"}, make("div", {class: "tools"}, buttons), plot, make("figcaption", {class: "faint"}, "files, your lines in them, and below these the lines of libraries that they lead to; a click opens one"));
}
