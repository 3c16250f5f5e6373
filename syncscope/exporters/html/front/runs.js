import {count, make, msTime, percent, section, three} from "./dom.js";

const FIRST = 30, WIDTH = 900, HEIGHT = 120, LEFT = 70, RIGHT = 12, TOP = 10, BOTTOM = 18;

/** All recordings below the logdir: their figures one after the other, and curves over them. */
export function runs(list, current, ask, open) {
  const box = section("runs", "Runs", `${count(list.length)} recording${list.length === 1 ? "" : "s"} below the logdir, the newest file first; TensorBoard's Scalars has the same as curves where they were exported by syncscope report`);
  const shown = list.slice(0, FIRST), figures = new Map(), curves = make("div", {class: "curves"});
  const rows = shown.map(({run, bytes}) => make("tr", {"aria-current": run === current ? "true" : null},
    make("td", {class: "left", "data-label": "recording"}, make("button", {type: "button", class: "link", onclick: () => open(run)}, run)),
    make("td", {class: "left"}, "…"), make("td", {}, `${three(bytes / 1e6)} MB`), ...["step", "reads", "saving", "busy"].map(name => make("td", {class: name}, "…"))));
  const start = make("button", {type: "button", onclick: () => { start.disabled = true; fill(); }}, "Read all, and draw the curves");
  box.append(make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Recordings"}, make("table", {}, make("thead", {}, make("tr", {}, ["recording", "recorded", "size", "step", "syncs a step", "all waits cost", "device busy"].map((name, n) => make("th", {scope: "col", class: n < 2 ? "left" : null}, name)))), make("tbody", {}, rows))),
    list.length > shown.length ? make("p", {class: "faint"}, `and ${count(list.length - shown.length)} older ones`) : "", list.length > 1 ? start : "", curves);

  async function one(number) {
    const told = await ask("summary", shown[number].run).catch(error => ({error: String(error)}));
    const cells = rows[number].querySelectorAll("td");
    cells[1].textContent = told.recorded ? new Date(1e3 * told.recorded).toLocaleString() : "–";
    if (told.error) { cells[3].textContent = told.error; cells[3].setAttribute("colspan", "4"); cells[3].className = "left problem"; for (const cell of [...cells].slice(4)) cell.remove(); return; }
    cells[3].textContent = msTime(told.step_ms);
    cells[4].textContent = told.reads === null ? "–" : three(told.reads);
    cells[5].textContent = msTime(told.saving_ms);
    cells[6].textContent = percent(told.device_busy);
    rows[number].title = told.verdict;
    figures.set(number, told);
  }

  async function fill() {
    for (let number = 0; number < shown.length; number++) await one(number);
    const when = n => figures.get(n).recorded ?? shown[n].time;
    const order = [...figures.keys()].sort((a, b) => when(a) - when(b) || shown[a].time - shown[b].time);
    curves.replaceChildren(...[["step_ms", "step", msTime], ["reads", "syncs a step", three], ["saving_ms", "all waits cost", msTime]].map(([key, name, words]) => curve(name, order.filter(n => figures.get(n)[key] !== null).map(n => ({value: figures.get(n)[key], run: shown[n].run})), words)).filter(Boolean));
  }
  one(shown.findIndex(({run}) => run === current));
  return box;
}

function curve(name, points, words) {
  if (points.length < 2) return null;
  const most = Math.max(...points.map(point => point.value)) || 1, x = n => LEFT + (WIDTH - LEFT - RIGHT) * n / (points.length - 1), y = value => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
  return make("figure", {}, make("figcaption", {}, `${name}, from the oldest to the newest`), make("svg:svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "img", "aria-label": `${name}: ${points.map(point => words(point.value)).join(", ")}`},
    [0, most].map(value => [make("svg:line", {x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid"}), make("svg:text", {x: LEFT - 8, y: y(value) + 4, class: "axis end"}, words(value))]),
    make("svg:path", {d: points.map((point, n) => `${n ? "L" : "M"}${x(n)} ${y(point.value)}`).join(" "), class: "line"}),
    points.map((point, n) => make("svg:circle", {cx: x(n), cy: y(point.value), r: 4, class: "point"}, make("svg:title", {}, `${point.run}: ${words(point.value)}`)))));
}
