import {verified} from "./verified.js";
import {fixed, largest, make, msTime, percent, plotted, section, table, three, ticks} from "./dom.js";

const KERNELS = {new: "new", more: "new", slower: "new", gone: "gone", fewer: "gone", faster: "gone"};
const WIDTH = 900, LEFT = 92, RIGHT = 20, TOP = 12, BAND = 54, BOTTOM = 34;

/** Two recordings side by side: their figures, the steps of both with the promise in between, and what became of each line. */
export function comparison(model, id = "comparison", title = "Before and after") {
  const found = model.comparison;
  if (!found && !model.verified) return null;
  if (!found) return section("comparison", "Proof", `${model.verified.program} as written and rewritten, run in turns`, verified(model));
  const {before, after} = found, known = value => value === null ? "-" : three(value);
  const box = section(id, title, `${found.before_name} and ${found.after_name}`, make("p", {class: "follows"}, found.words), plot(found));
  const signed = part => `${part < 0 ? "−" : "+"}${percent(Math.abs(part))}`;
  const between = found.change_range && found.change_range[1] - found.change_range[0] <= 1 ? found.change_range.map(signed).join(" to ") : "";
  const verdict = found.not_comparable ? ", not comparable" : found.within_noise ? found.every_step ? `, every counted step ${found.every_step}, yet not surely` : ", within noise" : "";
  const rows = [["step", "step_ms", msTime], ["give or take (95 %)", null, null], ["device busy", "device_busy", percent], ["syncs a step", "reads_per_step", known], ["host blocked, a step", "blocked_ms", msTime], ["steps", "steps", String]]
    .map(([name, key, words]) => key ? {name, a: words(before[key]), b: words(after[key]), change: key === "steps" || !before[key] || after[key] === null ? "" : `${after[key] >= before[key] ? "+" : "−"}${percent(Math.abs(after[key] - before[key]) / before[key])}${key === "step_ms" ? verdict : ""}`} : found.spread_ms && {name, a: msTime(found.spread_ms[0]), b: msTime(found.spread_ms[1]), change: between}).filter(Boolean);
  const work = [["device work, a step", found.device_work_ms, msTime], ["pieces of it", found.device_work_pieces, known], ["launches", found.launches, known]].filter(([, pair]) => pair).map(([name, [a, b], words]) => ({name, a: words(a), b: words(b), change: ""}));
  const lines = found.why_not ? [] : [...found.gone.map(a => ["gone", a, null]), ...found.new.map(b => ["new", null, b]), ...found.changed.map(c => ["changed", c.before, c.after]), ...found.same.map(b => ["same", b, b])];
  const place = line => line.path ? `${line.path}:${line.line}` : "no line known";
  box.append(make("div", {class: "pair"},
    make("div", {}, make("h3", {}, "Figures"), table([{name: "figure", left: true, text: row => row.name}, {name: "before", text: row => row.a}, {name: "after", text: row => row.b}, {name: "change", left: true, text: row => row.change}], [...rows, ...work], "Figures before and after")),
    make("div", {}, make("h3", {}, "Lines"), lines.length ? table([{name: "became", left: true, text: ([word]) => make("span", {class: `became ${word}`}, word)}, {name: "line", left: true, text: ([, a, b]) => place(b || a)}, {name: "op", left: true, text: ([, a, b]) => (b || a).op},
      {name: "syncs", title: "a step, before and after", text: ([, a, b]) => `${a ? three(a.count) : "–"} → ${b ? three(b.count) : "–"}`}, {name: "blocked ms", title: "a step, before and after", text: ([, a, b]) => `${a ? fixed(a.blocked_ms) : "–"} → ${b ? fixed(b.blocked_ms) : "–"}`}], lines, "What became of each line") : make("p", {}, found.why_not ? "nothing is said of lines" : "neither waits for the device"))));
  if (found.kernels?.length) box.append(make("h3", {class: "spaced"}, "Kernels and copies"), table([{name: "became", left: true, text: one => make("span", {class: `became ${KERNELS[one.became]}`}, one.became)}, {name: "kernel or copy", left: true, text: one => make("code", {class: "clip"}, one.name.replace(/^void /, "").split(/[(<]/)[0] || one.name), tell: one => one.name}, ...(found.kernels.some(one => one.path) ? [{name: "of line", left: true, text: one => one.path ? `${one.path}:${one.line}` : ""}] : []),
    {name: "number", title: "a step, before and after", text: one => `${three(one.count[0])} → ${three(one.count[1])}`}, {name: "ms", title: "a step, before and after", text: one => `${fixed(one.ms[0])} → ${fixed(one.ms[1])}`}], found.kernels.slice(0, 50), "What became of the device's work"));
  if (model.verified) box.append(make("h3", {class: "spaced"}, "Proof"), ...verified(model));
  return box;
}

/** The steps of both as dots on one axis; the band is what was promised. */
function plot(found) {
  const all = [...found.before_steps_ms, ...found.after_steps_ms, ...(found.predicted_range_ms || [])];
  if (!found.before_steps_ms.length || !found.after_steps_ms.length) return "";
  const most = largest(all) * 1.04, height = TOP + 2 * BAND + BOTTOM, x = ms => LEFT + (WIDTH - LEFT - RIGHT) * ms / most;
  const svg = make("svg:svg", {viewBox: `0 0 ${WIDTH} ${height}`, class: "dots", role: "img", "aria-label": `Steps before and after${found.predicted_ms !== null ? `, promised ${msTime(found.predicted_ms)}` : ""}`});
  for (const tick of ticks(most, 8)) svg.append(make("svg:line", {x1: x(tick), x2: x(tick), y1: TOP, y2: height - BOTTOM, class: "grid"}), make("svg:text", {x: x(tick), y: height - BOTTOM + 16, class: "axis middle"}, msTime(tick)));
  if (found.predicted_range_ms) svg.append(make("svg:rect", {x: x(found.predicted_range_ms[0]), width: Math.max(2, x(found.predicted_range_ms[1]) - x(found.predicted_range_ms[0])), y: TOP, height: 2 * BAND, class: "promised"}, make("svg:title", {}, `promised: ${found.predicted_range_ms.map(msTime).join(" to ")}`)),
    make("svg:text", {x: x(found.predicted_ms), y: height - 4, class: "axis middle name"}, `promised ${msTime(found.predicted_ms)}`));
  [["before", found.before_steps_ms, found.before.step_ms], ["after", found.after_steps_ms, found.after.step_ms]].forEach(([name, steps, step], row) => {
    const middle = TOP + (row + .5) * BAND;
    svg.append(make("svg:text", {x: LEFT - 12, y: middle + 4, class: "axis end"}, name));
    steps.slice(0, 2000).forEach((ms, n) => svg.append(make("svg:circle", {cx: x(ms), cy: middle + (n * 7919 % 31 - 15), r: 3.2, class: `at ${name}`}, make("svg:title", {}, msTime(ms)))));
    if (step) svg.append(make("svg:line", {x1: x(step), x2: x(step), y1: middle - 22, y2: middle + 22, class: "mean"}));
  });
  return plotted(svg, "Each dot is a step that was counted, as recorded; the lines are a step as it is compared, without what the recorder took; the band is what the replay of the first recording had promised.");
}
