import {make, msTime, percent, plotted, prose, table, three, ticks} from "./dom.js";

const WIDTH = 900, LEFT = 130, RIGHT = 20, TOP = 10, ROW = 30, BOTTOM = 22;

/** What was measured of a fix, in words. */
export function measured({ratio, low, high, values}) {
  const takes = ratio === null || ratio === undefined ? "no step was measured" : `a step takes ${percent(ratio)} of before${low !== null ? ` (${percent(low)} to ${percent(high)})` : ""}`;
  return `${takes}${values ? `, its values are ${values}` : ""}`;
}

/** The result of `syncscope verify`: what was measured beside what was promised, and each fix. */
export function verified(model) {
  const found = model.verified;
  const facts = [["step", found.step_ms_before !== null ? `${msTime(found.step_ms_before)} → ${msTime(found.step_ms_after)}` : "-"], ["syncs a step", found.reads_before !== null ? `${three(found.reads_before)} → ${found.reads_after !== null ? three(found.reads_after) : "?"}` : "-"],
    ["values", found.values || "-"], ["two equal versions", found.same_ratio !== null ? percent(found.same_ratio) : "-"], ["steps", `${found.steps} in ${found.runs} runs`]];
  const fixes = found.fixes.length ? table([{name: "line", left: true, text: fix => `${fix.path}:${fix.line}`}, {name: "rewrite", left: true, text: fix => [make("span", {class: "clip"}, fix.title), " ", make("span", {class: `safety ${fix.safety}`}, fix.safety)], tell: fix => fix.changes}, {name: "result", left: true, text: fix => make("b", {class: fix.kept ? "good" : "bad"}, fix.kept ? "kept" : "not kept")},
    {name: "step", title: "that of the rewritten over that as written", text: fix => fix.ratio === null ? "-" : percent(fix.ratio)}, {name: "between", text: fix => fix.low === null ? "-" : `${percent(fix.low)} and ${percent(fix.high)}`}, {name: "values", left: true, text: fix => fix.values || "-"}, {name: "why", left: true, text: fix => prose(fix.why || "")}], found.fixes, "Rewrites that were tried") : "";
  return [make("p", {class: "follows"}, `${measured(found)[0].toUpperCase()}${measured(found).slice(1)}${found.came_true === null ? "" : found.came_true ? ": what was promised came true" : ": what was promised did not come true"}.`),
    plot(found), make("dl", {class: "facts"}, facts.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])), fixes, ...found.notes.map(note => make("p", {class: "faint"}, prose(note)))];
}

/** Ratios on one axis, each with what it lies between. */
function plot(found) {
  const rows = [["promised", found.predicted_ratio, found.predicted_low, found.predicted_high], ["measured", found.ratio, found.low, found.high], ["equal versions", found.same_ratio, found.same_low, found.same_high]].filter(([, ratio]) => ratio !== null && ratio !== undefined);
  if (!rows.length) return "";
  const most = 1.05 * Math.max(1, ...rows.flatMap(row => row.slice(1).filter(value => value !== null && value !== undefined))), height = TOP + ROW * rows.length + BOTTOM, x = value => LEFT + (WIDTH - LEFT - RIGHT) * value / most;
  const svg = make("svg:svg", {viewBox: `0 0 ${WIDTH} ${height}`, class: "dots", role: "img", "aria-label": rows.map(([name, ratio]) => `${name} ${percent(ratio)}`).join(", ")});
  for (const tick of ticks(most, 6)) svg.append(make("svg:line", {x1: x(tick), x2: x(tick), y1: TOP, y2: height - BOTTOM, class: tick === 1 ? "median" : "grid", stroke: "currentcolor"}), make("svg:text", {x: x(tick), y: height - 6, class: "axis middle"}, percent(tick)));
  rows.forEach(([name, ratio, low, high], n) => {
    const y = TOP + ROW * (n + .5);
    svg.append(make("svg:text", {x: LEFT - 12, y: y + 4, class: "axis end"}, name), make("svg:line", {x1: x(low ?? ratio), x2: x(high ?? ratio), y1: y, y2: y, class: `span ${n ? "" : "promise-span"}`}), make("svg:circle", {cx: x(ratio), cy: y, r: 5, class: "point"}, make("svg:title", {}, `${name} ${percent(ratio)}`)));
  });
  return plotted(svg, "A step after over a step before; the lines are what each lies between.");
}
