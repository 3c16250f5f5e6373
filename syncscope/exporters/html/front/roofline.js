import {make, msTime, percent, plotted, three} from "./dom.js";

const WIDTH = 900, HEIGHT = 320, LEFT = 92, BOTTOM = 40, TOP = 14, RIGHT = 136, APART = 13;

/** Operators by operations a byte and operations a second, under the roof that memory and arithmetic make; null without any. */
export function roofline(operators, ceilings) {
  const known = operators.filter(line => line.flops > 0 && line.bytes > 0 && line.ms > 0)
    .map(line => ({...line, x: line.flops / line.bytes, y: line.flops / line.ms * 1e3})).slice(0, 300);
  if (!known.length) return null;
  const ridge = ceilings ? [ceilings.flops_per_s / ceilings.bytes_per_s, (ceilings.flops_16_per_s || ceilings.flops_per_s) / ceilings.bytes_per_s] : [];
  const xs = range([...known.map(line => line.x), ...ridge]), top = ceilings ? [Math.max(ceilings.flops_16_per_s, ceilings.flops_tf32_per_s, ceilings.flops_per_s)] : [];
  const ys = range([...known.map(line => line.y), ...top]);
  const x = value => LEFT + (WIDTH - LEFT - RIGHT) * (Math.log10(value) - xs[0]) / (xs[1] - xs[0]);
  const y = value => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (Math.log10(value) - ys[0]) / (ys[1] - ys[0]));
  const svg = make("svg:svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "roofline", role: "img", "aria-label": `Roofline of ${known.length} operators; the table below has their figures`});
  for (let power = Math.ceil(xs[0]); power <= xs[1]; power++) svg.append(make("svg:line", {x1: x(10 ** power), x2: x(10 ** power), y1: TOP, y2: HEIGHT - BOTTOM, class: "grid"}), make("svg:text", {x: x(10 ** power), y: HEIGHT - BOTTOM + 16, class: "axis middle"}, power < 0 ? (10 ** power).toFixed(-power) : String(10 ** power)));
  for (let power = Math.ceil(ys[0]); power <= ys[1]; power++) svg.append(make("svg:line", {x1: LEFT, x2: WIDTH - RIGHT, y1: y(10 ** power), y2: y(10 ** power), class: "grid"}), make("svg:text", {x: LEFT - 8, y: y(10 ** power) + 4, class: "axis end"}, rate(10 ** power)));
  svg.append(make("svg:text", {x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, class: "axis middle"}, "operations a byte"));
  let free = HEIGHT;  // of the column beside the plot where ceilings are named, the lowest first: two may be near each other
  for (const [flops, name] of ceilings ? [[ceilings.flops_per_s, "float32"], [ceilings.flops_tf32_per_s, "TF32"], [ceilings.flops_16_per_s, "16 bits"]].filter(([value]) => value) : []) {
    const corner = flops / ceilings.bytes_per_s, from = 10 ** xs[0], low = Math.max(from, 10 ** ys[0] / ceilings.bytes_per_s);
    const beside = Math.min(y(flops) + 4, free);
    free = beside - APART;
    svg.append(make("svg:path", {d: `M${x(low)} ${y(low * ceilings.bytes_per_s)} L${x(corner)} ${y(flops)} L${WIDTH - RIGHT} ${y(flops)}`, class: "roof"}),
      make("svg:text", {x: WIDTH - RIGHT + 6, y: beside, class: "axis"}, `${rate(flops)} in ${name}`));
  }
  const most = Math.max(...known.map(line => line.ms));
  for (const line of [...known].reverse()) svg.append(make("svg:circle", {cx: x(line.x), cy: y(line.y), r: 3 + 11 * Math.sqrt(line.ms / most), class: `dot ${line.bound || "unknown"}`},
    make("svg:title", {}, `${line.op} ${line.shapes}\n${msTime(line.ms)}, ${three(line.x)} operations a byte, ${rate(line.y)}${line.bound ? `\nbound by ${line.bound}: ${percent(line.reached)} of it${line.why ? `, ${line.why}` : ""}` : ""}`)));
  const named = [];
  for (const line of known.slice(0, 8)) {
    const place = {x: x(line.x), y: y(line.y) - 6 - 11 * Math.sqrt(line.ms / most), class: "axis middle name"};
    if (named.some(other => Math.abs(other.x - place.x) < 150 && Math.abs(other.y - place.y) < 14)) continue;  // they would lie on each other
    named.push(place);
    svg.append(make("svg:text", place, line.op.replace(/^aten::/, "")));
  }
  return plotted(svg, make("i", {class: "key memory"}), "nearer to memory ", make("i", {class: "key arithmetic"}), "nearer to arithmetic · the larger, the more time");
}

const range = values => [Math.floor(Math.log10(Math.min(...values)) - .1), Math.ceil(Math.log10(Math.max(...values)) + .1)];
const rate = flops => { const [unit, scale] = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["", 1]].find(([, s]) => flops >= s * .9995) || ["", 1]; return `${three(flops / scale)} ${unit}FLOPS`; };
