import {colour, largest, make, msTime, section, ticks} from "./dom.js";

const HEIGHT = 190, LEFT = 62, BOTTOM = 22, TOP = 16, LATE = 1.5, CLIP = 2.5;

/** Which of these steps the figures are of, where that are not all. */
const uncounted = (model, list) => model.page.counted && model.page.counted < list.length && model.step_ms !== null
  ? `; figures are of the ${model.page.counted} that are counted, ${msTime(model.step_ms)} on the mean` : "";

/** Each step as a bar of its parts, on an axis; what is far longer than the median is named. */
export function steps(model, goToStep) {
  if (!model.steps?.length) return null;
  const list = model.steps, sorted = list.map(step => step.ms).sort((a, b) => a - b), median = sorted[sorted.length >> 1];
  const out = list.filter(step => step.ms > LATE * median && median > 0 && list.length > 2).sort((a, b) => b.ms - a.ms);
  const lead = `${list.length === 1 ? "one step" : `${list.length} steps, the median of all is ${msTime(median)}${uncounted(model, list)}`}; a click or Enter opens the timeline there`;
  const box = section("steps", "Steps", lead);
  const told = make("output", {class: "told"});
  const chart = make("div", {class: "chart", tabindex: 0, role: "slider", "aria-label": "Steps", "aria-valuemin": 0, "aria-valuemax": list.length - 1,
    "aria-valuenow": 0, "aria-valuetext": tell(list[0])});
  const outliers = out.slice(0, 6).map(step => make("li", {}, make("button", {type: "button", class: "link", onclick: () => goToStep(step)}, `step ${step.index}`),
    ` took ${msTime(step.ms)}, ${(step.ms / median).toFixed(1)} times the median${because(step, list, median)}`));
  box.append(chart, told, outliers.length ? make("ul", {class: "outliers", "aria-label": "Steps that took long"}, outliers, out.length > 6 ? make("li", {}, `and ${out.length - 6} more`) : "") : "", asTable(list));
  let at = -1;
  const choose = number => {
    at = Math.max(0, Math.min(list.length - 1, number));
    chart.setAttribute("aria-valuenow", at);
    chart.setAttribute("aria-valuetext", tell(list[at]));
    told.textContent = tell(list[at]);
    for (const mark of chart.querySelectorAll(".chosen")) mark.classList.remove("chosen");
    chart.querySelector(`[data-step="${at}"]`)?.classList.add("chosen");
  };
  const draw = () => chart.replaceChildren(picture(list, median, chart.clientWidth || 800, choose, goToStep));
  chart.addEventListener("keydown", event => {
    const moves = {ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -list.length, End: list.length};
    if (event.key in moves) choose(at + moves[event.key]);
    else if (event.key === "Enter" && at >= 0) goToStep(list[at]);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(draw).observe(chart);
  return box;
}

const tell = step => `step ${step.index}: ${msTime(step.ms)}` + (step.uses_ms ? ` (${parts(step).map(([use, ms]) => `${NAMES[use]} ${msTime(ms)}`).join(", ")})` : step.busy_ms === null ? "" : `, the device works ${msTime(step.busy_ms)}`);
const parts = step => Object.entries(step.uses_ms).filter(([, ms]) => ms > 0.005 * step.ms);
export const NAMES = {compute: "computes", copy: "copies", collective: "other ranks", wait: "after waits", loader: "loader", launch: "launches", host: "host", queue: "between", unexplained: "unexplained"};

/** What a long step has more of than the usual one. */
function because(step, list, median) {
  if (!step.uses_ms) return "";
  const usual = use => { const all = list.map(one => one.uses_ms?.[use] ?? 0).sort((a, b) => a - b); return all[all.length >> 1]; };
  const [use, more] = Object.entries(step.uses_ms).map(([name, ms]) => [name, ms - usual(name)]).sort((a, b) => b[1] - a[1])[0];
  return more > .3 * (step.ms - median) ? `: ${msTime(more)} more ${MORE[use]}` : "";
}
const MORE = {compute: "of computing", copy: "of copies", collective: "with other ranks", wait: "idle after waits", loader: "in the loader", launch: "in launches", host: "of other work of the host", queue: "between kernels", unexplained: "unexplained"};

function picture(list, median, width, choose, goToStep) {
  const top = Math.min(largest(list.map(step => step.ms)), CLIP * median) || 1;
  const room = width - LEFT - 6, fits = Math.max(1, Math.floor(room / 3)), group = Math.ceil(list.length / fits);
  const bars = [];
  for (let first = 0; first < list.length; first += group) {
    let longest = first;
    for (let n = first; n < Math.min(list.length, first + group); n++) if (list[n].ms > list[longest].ms) longest = n;
    bars.push(longest);  // of many in one bar the longest
  }
  const wide = Math.min(56, room / bars.length), y = ms => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.min(ms, top) / top);
  const svg = make("svg:svg", {width, height: HEIGHT, "aria-hidden": "true"});
  for (const tick of ticks(top, 4)) svg.append(make("svg:line", {x1: LEFT, x2: width, y1: y(tick), y2: y(tick), class: "grid"}),
    make("svg:text", {x: LEFT - 8, y: y(tick) + 4, class: "axis end"}, msTime(tick)));
  bars.forEach((number, position) => {
    const step = list[number], x = LEFT + position * wide, gap = wide > 6 ? 2 : wide > 3 ? 1 : 0;
    const bar = make("svg:g", {"data-step": number, class: "step"}, make("svg:title", {}, tell(step)));
    let under = 0;
    const scale = Math.min(1, top / step.ms);
    for (const [use, ms] of step.uses_ms ? Object.entries(step.uses_ms) : step.busy_ms === null ? [["unexplained", step.ms]] : [["compute", step.busy_ms], ["host", step.ms - step.busy_ms]]) {
      if (ms <= 0) continue;
      bar.append(make("svg:rect", {x, width: Math.max(1, wide - gap), y: y((under + ms) * scale), height: Math.max(0, y(under * scale) - y((under + ms) * scale)), class: `use-${use}`}));
      under += ms;
    }
    if (step.ms > top) bar.append(make("svg:path", {d: `M${x - 1} ${TOP + 8} l${wide} -6`, class: "cut"}));
    if (step.ms > LATE * median && wide > 3) bar.append(make("svg:text", {x: x + wide / 2, y: TOP - 5, class: "axis middle"}, wide > 30 ? msTime(step.ms) : "!"));
    bar.append(make("svg:rect", {x, width: wide, y: TOP, height: HEIGHT - TOP - BOTTOM, class: "hit"}));
    bar.addEventListener("pointerenter", () => choose(number));
    bar.addEventListener("click", () => goToStep(step));
    svg.append(bar);
  });
  const every = Math.max(1, Math.ceil(44 / wide));
  bars.forEach((number, position) => { if (position % every === 0) svg.append(make("svg:text", {x: LEFT + (position + .5) * wide, y: HEIGHT - 6, class: "axis middle"}, String(list[number].index))); });
  svg.append(make("svg:line", {x1: LEFT, x2: LEFT + wide * bars.length, y1: y(median), y2: y(median), class: "median", stroke: colour("--text")}));
  return svg;
}

function asTable(list) {
  const cut = list.slice(0, 1000);
  return make("details", {class: "astable"}, make("summary", {}, "as a table"), make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Steps as a table"}, make("table", {}, make("thead", {}, make("tr", {}, ["step", "takes", "device works", ...Object.values(NAMES)].map(name => make("th", {scope: "col"}, name)))),
    make("tbody", {}, cut.map(step => make("tr", {}, make("th", {scope: "row"}, String(step.index)), make("td", {}, msTime(step.ms)), make("td", {}, msTime(step.busy_ms)),
      Object.keys(NAMES).map(use => make("td", {}, step.uses_ms ? msTime(step.uses_ms[use]) : "-"))))))));
}
