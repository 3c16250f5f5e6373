import {largest, make, msTime, plotted, smallest, ticks} from "./dom.js";

const WIDTH = 900, LEFT = 62, RIGHT = 26, TOP = 8, LANE = 22, BOTTOM = 26, THIN = 1.5;

/** The ranks of a job side by side, a lane each, one step at a time: their collectives, and how long each waited for the last rank. */
export function rankLanes(found) {
  const steps = [...new Set(found.lanes.flatMap(lane => lane.met.map(([step]) => step)))].sort((a, b) => a - b);
  if (!steps.length) return "";
  const waited = new Map(steps.map(step => [step, 0]));
  for (const lane of found.lanes) for (const [step, start, until] of lane.met) waited.set(step, waited.get(step) + until - start);
  const most = steps.reduce((a, b) => waited.get(b) > waited.get(a) ? b : a);
  const place = make("div", {});
  const choose = make("select", {"aria-label": "Step that is drawn", onchange: () => draw(Number(choose.value))}, steps.map(step => make("option", {value: step, selected: step === most}, step < 0 ? "outside of steps" : `step ${step}`)));
  const go = by => { choose.selectedIndex = Math.min(steps.length - 1, Math.max(0, choose.selectedIndex + by)); draw(Number(choose.value)); };
  const draw = step => place.replaceChildren(lanes(found, step));
  draw(most);
  const left = [found.steps > steps.length ? `${steps.length} of ${found.steps} steps are here, those in which most was waited` : "", found.ranks > found.lanes.length ? `${found.lanes.length} of ${found.ranks} ranks, those that others waited for most` : ""].filter(Boolean);
  return make("div", {class: "rank-lanes"}, make("h3", {class: "spaced"}, "The ranks side by side"),
    make("div", {class: "picker"}, make("button", {type: "button", "aria-label": "The step before", onclick: () => go(-1)}, "‹"), " ", choose, " ", make("button", {type: "button", "aria-label": "The next step", onclick: () => go(1)}, "›")),
    make("p", {class: "faint"}, KEYS.map(([name, words]) => [make("i", {class: `key lane-${name}`}), words]), left.length ? `; ${left.join(", ")}` : ""), place);
}

const KEYS = [["step", "the step"], ["wait", "waits for a rank that comes later"], ["move", "exchanges"], ["unknown", "a collective of which nobody knows what it waits"]];

function lanes(found, step) {
  const shown = found.lanes.map(lane => ({number: lane.number, own: lane.steps[step], met: lane.met.filter(([of]) => of === step)}));
  const begin = smallest(shown.flatMap(({own, met}) => [...(own ? [own[0]] : []), ...met.map(([, start]) => start)]));
  const end = largest(shown.flatMap(({own, met}) => [...(own ? [own[1]] : []), ...met.map(one => one[3])]));
  const height = TOP + shown.length * LANE + BOTTOM, x = ms => LEFT + (WIDTH - LEFT - RIGHT) * (ms - begin) / Math.max(1e-9, end - begin);
  const name = step < 0 ? "outside of steps" : `step ${step}`;
  const svg = make("svg:svg", {viewBox: `0 0 ${WIDTH} ${height}`, class: "dots lanes", role: "img", "aria-label": `${shown.length} ranks in ${name}, and what they wait for one another`});
  for (const tick of ticks(end - begin, 8)) svg.append(make("svg:line", {x1: x(begin + tick), x2: x(begin + tick), y1: TOP, y2: height - BOTTOM, class: "grid"}), make("svg:text", {x: x(begin + tick), y: height - BOTTOM + 16, class: "axis middle"}, msTime(tick)));
  shown.forEach(({number, own, met}, row) => {
    const top = TOP + row * LANE + 3, tall = LANE - 6;
    const bar = (from, to, kind, words) => svg.append(make("svg:rect", {x: x(from), width: Math.max(THIN, x(to) - x(from)), y: top, height: tall, class: `lane-${kind}`}, make("svg:title", {}, words)));
    svg.append(make("svg:text", {x: LEFT - 8, y: top + tall - 3, class: "axis end"}, `rank ${number}`));
    if (own) bar(own[0], own[1], "step", `rank ${number}, ${name}: ${msTime(own[1] - own[0])}`);
    for (const [, start, until, over, meet] of met) {
      const [key, late, cause] = found.late[meet] || ["", null, ""];
      const what = key ? `rank ${number}, ${key.split("/").slice(1).join(" ").split(/[(<]/)[0].replace(/nccl(?:Dev)?Kernel_/, "").trim()}` : `rank ${number}`;
      if (meet < 0) bar(start, over, "unknown", `${what}: a collective of ${msTime(over - start)}; what of it is a wait is not known`);
      else {
        if (until > start) bar(start, until, "wait", `${what}: waits ${msTime(until - start)} for rank ${late}${cause ? `, late by ${cause}` : ""}`);
        bar(until, over, "move", `${what}: exchanges for ${msTime(over - until)}${late === number && cause ? `; it came last, by ${cause}` : ""}`);
        if (late === number && cause) svg.append(make("svg:path", {d: `M${x(start)} ${top + tall + 2}l-4 5h8z`, class: "lane-last"}, make("svg:title", {}, `${what}: the last to come`)));
      }
    }
  });
  return plotted(svg, `${name[0].toUpperCase()}${name.slice(1)}, on one clock. A triangle stands where the last rank comes to a collective.`);
}
