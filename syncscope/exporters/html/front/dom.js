/** An element with attributes and children; text is never parsed as HTML. `on…` attributes are listeners, null ones are left out. */
export function make(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

/** A sentence in which `code` between backticks is set as code. */
export function prose(text) {
  return text.split("`").map((part, number) => number % 2 ? make("code", {}, part) : part);
}

/** A section of the page with its heading and a line under it. */
export function section(id, title, lead = null, ...children) {
  return make("section", {id, "aria-labelledby": `${id}-title`}, make("h2", {id: `${id}-title`}, title), lead && make("p", {class: "lead"}, lead), children);
}

// ---- figures, as the terminal's report writes them (exporters/_figures.py) --------------------------------------------------

const UNITS = [["ns", 1], ["us", 1e3], ["ms", 1e6]];
export const unitOf = ns => UNITS.find(([, scale]) => Math.abs(ns) < 999.5 * scale) || ["s", 1e9];

/** A number with three figures, as many decimals as that leaves, and no more than two. */
export function three(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 || size < .005 ? 0 : size >= 9.995 ? 1 : 2);
}

/** A duration in ns in the unit that suits it: `873 ns`, `4.21 us`, `31.5 ms`. */
export function time(ns) {
  const [unit, scale] = unitOf(ns);
  return `${three(ns / scale)} ${unit}`;
}

const SIZES = [["kB", 1e3], ["MB", 1e6], ["GB", 1e9]];

/** Bytes in the unit that suits them: `512 B`, `4.20 kB`, `31.5 MB`. */
export function size(bytes) {
  if (Math.abs(bytes) < 999.5) return `${bytes.toFixed(0)} B`;
  const [unit, scale] = SIZES.find(([, scale]) => Math.abs(bytes) < 999.5 * scale) || ["TB", 1e12];
  return `${three(bytes / scale)} ${unit}`;
}

export const msTime = ms => ms === null || ms === undefined ? "-" : time(1e6 * ms);
export const percent = share => Number.isFinite(share) ? `${three(100 * share)} %` : "-";

/** What a saving lies between, ms: `1.20 ms to 3.00 ms`, and where it may be none `0.30 ms longer to 3.00 ms shorter`. */
export const within = (low, high) => msTime(low).startsWith("-") ? msTime(high).startsWith("-") ? `${msTime(-high)} to ${msTime(-low)} longer` : `${msTime(-low)} longer to ${msTime(high)} shorter` : `${msTime(low)} to ${msTime(high)}`;

/** A whole number with its thousands apart; `toLocaleString` would load the tables of all languages first. */
export const count = number => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");

/** A number for a column: two decimals below a thousand. */
export function fixed(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  return value.toFixed(size < 1000 ? 2 : size < 10000 ? 1 : 0);
}

/** The largest of numbers, however many: a call takes no more than some 100,000. */
export const largest = (numbers, least = -Infinity) => numbers.reduce((a, b) => a > b ? a : b, least);
export const smallest = numbers => numbers.reduce((a, b) => a < b ? a : b, Infinity);

/** The path of a library's file without the folder that it is installed in; any other as it is. */
export const tail = path => path.replace(/^.*[\\/](?:site|dist)-packages[\\/]/, "");

/** What an object made from JSON has under a name; none has "constructor" by nature. */
export const under = (object, name) => Object.hasOwn(object, name) ? object[name] : undefined;

/** Steps of a scale from 0 to `most`: about `wanted` round numbers. */
export function ticks(most, wanted) {
  if (!(most > 0)) return [0];
  const raw = most / wanted, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= raw);
  return Array.from({length: Math.floor(most / step + 1e-9) + 1}, (_, k) => k * step);
}

/** A kernel's name without its namespaces, template arguments and parameters. */
export function short(kernel) {
  const plain = kernel.replace(/^void /, "").replaceAll("(anonymous namespace)::", "").split(/[<(]/, 1)[0];
  return plain.slice(plain.lastIndexOf("::") < 0 ? 0 : plain.lastIndexOf("::") + 2) || kernel;
}

/** Let the browser paint what there is, and take what the user does, before going on. */
export const painted = () => new Promise(done => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 200); });

/** The value of a custom property of the page's style. */
export const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** What a page may remember; a sandboxed one remembers nothing. */
export const kept = {
  get(key) { try { return localStorage.getItem(`syncscope.${key}`); } catch { return null; } },
  set(key, value) { try { localStorage.setItem(`syncscope.${key}`, value); } catch { /* nothing is kept */ } },
};

/** A plot with what is said under it; where there is too little room for it, it is scrolled. */
export const plotted = (svg, ...caption) => make("figure", {}, make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": svg.getAttribute("aria-label")}, svg), caption.length ? make("figcaption", {}, caption) : "");

/** A table whose columns are `{name, title, text, left, sort}`; `row` gives further attributes of a row. */
export function table(columns, rows, caption, row = () => ({})) {
  const cell = (column, item) => {
    const value = column.text(item);
    return make("td", {class: column.left ? "left" : null, "data-label": column.name, title: column.tell ? column.tell(item) : null}, value);
  };
  return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
    make("table", {}, make("caption", {class: "hidden"}, caption),
      make("thead", {}, make("tr", {}, columns.map(column => make("th", {scope: "col", class: column.left ? "left" : null, title: column.title}, column.name)))),
      make("tbody", {}, rows.map(item => make("tr", row(item), columns.map(column => cell(column, item)))))));
}
