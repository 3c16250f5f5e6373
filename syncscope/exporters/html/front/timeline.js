import {Canvas} from "./canvas.js";
import {Events} from "./events.js";
import {heldUp, quoted} from "./held_up.js";
import {openInPerfetto} from "./perfetto.js";
import {count, make, percent, section, table, three, time} from "./dom.js";

const LEGEND = [["kernel", "kernel"], ["copy", "copy"], ["fill", "fill"], ["wait", "wait of the host"], ["op", "operator"], ["annotation", "region"], ["python", "Python"], ["call", "call of the driver"], ["compile", "building kernels"]];

/** The timeline: a canvas, what is found in it, and what is selected. */
export function timeline(model, facts, text) {
  if (!facts) return null;
  const box = section("timeline", "Timeline", "Drag moves, Ctrl + wheel or + and - zoom, dragging in the ruler or with Shift selects a time; n and p go from wait to wait.");
  const canvas = make("canvas", {tabindex: 0, role: "application", "aria-roledescription": "timeline", "aria-label": "Timeline of the recording", "aria-describedby": "timeline-keys"});
  const spacer = make("div", {class: "spacer"}), frame = make("div", {class: "frame"}, canvas, spacer);
  const under = make("p", {class: "under", "aria-hidden": "true"}, " "), about = make("div", {class: "about", "aria-live": "polite"}), chosen = make("div", {class: "chosen", "aria-live": "polite"});
  const hits = make("output", {class: "hits"}), search = make("input", {type: "search", placeholder: "search events", "aria-label": "Search events"});
  const button = (label, name, action) => make("button", {type: "button", title: name, "aria-label": name, onclick: () => { if (view) action(); }}, label);
  const arrows = make("input", {type: "checkbox", onchange: () => { if (view) { view.arrows = arrows.checked; view.ask(); } }});
  const watching = [];
  let view = null, found = [], at = -1;
  const look = way => { if (!found.length) return; at = (at + way + found.length) % found.length; view.select(found[at]); hits.textContent = `${count(at + 1)} of ${count(found.length)}`; };
  const seek = () => {
    if (!view || !search.value && !view.found) return;  // what is typed before it is unpacked is looked for then
    found = view.events.search(search.value);
    at = -1;
    view.found = search.value.trim() ? new Set(found) : null;
    hits.textContent = view.found ? `${count(found.length)} found, ${time(found.reduce((sum, i) => sum + view.events.duration[i], 0))}` : "";
    view.ask();
  };
  search.addEventListener("input", seek);
  search.addEventListener("keydown", event => { if (event.key === "Enter") { look(event.shiftKey ? -1 : 1); event.preventDefault(); } });
  const present = new Set(facts.rows.length ? facts.kinds : []);
  box.append(
    make("div", {class: "tools"}, search, button("‹", "previous found", () => look(-1)), button("›", "next found", () => look(1)), hits,
      make("span", {class: "push"}), button("−", "zoom out", () => view.zoom(1 / .6)), button("+", "zoom in", () => view.zoom(.6)), button("all", "show all of the recording", () => view.show(0, view.events.end)),
      button("‹ wait", "previous wait", () => view.wait(-1)), button("wait ›", "next wait", () => view.wait(1)),
      make("label", {title: "from launches to their work, and from work to the waits for it"}, arrows, " arrows"),
      button("Perfetto ↗", "open what is seen in ui.perfetto.dev (needs the network)", () => openInPerfetto(view, model.page.title, hits))),
    frame, under,
    make("ul", {class: "key", "aria-label": "Legend"}, LEGEND.filter(([kind]) => present.has(kind)).map(([kind, words]) => make("li", {"data-kind": kind}, make("i", {class: `kind-${kind}`}), words))),
    chosen, about,
    make("details", {class: "legend", id: "timeline-keys"}, make("summary", {}, "keys"), make("dl", {class: "keys"}, [["← →  a d", "move"], ["+ −  w s", "zoom"], ["n p", "next and previous wait"], [", .", "the event before and after in its row"], ["l", "follow the link: from work to its launch, from a wait to its work"], ["Enter", "zoom to what is selected"], ["0", "all of the recording"], ["Esc", "select nothing"], ["click on a lane's name", "show all its levels"]].map(([key, words]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, words)]))),
    ...facts.notes.map(note => make("p", {class: "faint"}, note)));
  const steps = model.steps.map(step => ({from: 1e6 * step.start_ms - facts.origin, to: 1e6 * (step.start_ms + step.ms) - facts.origin, label: `step ${step.index}`, ms: step.ms}));
  const ready = Events.unpack(facts, text).then(events => {
    const told = {
      under: i => { under.textContent = i < 0 ? " " : line(events, i); },
      selected: i => about.replaceChildren(...(i < 0 ? [] : [details(events, i, steps, n => view.select(n))])),
      view: (from, to) => { for (const one of watching) one(from, to); },
      range: range => chosen.replaceChildren(...(range ? [statistics(events, range, n => view.select(n, false))] : [])),
    };
    view = new Canvas(frame, canvas, spacer, events, steps, told);
    box.view = view;
    for (const key of box.querySelectorAll(".key li")) key.hidden = !events.present[facts.kinds.indexOf(key.dataset.kind)];
    const first = usual(steps);
    if (first) view.show(first.from - .02 * (first.to - first.from), first.to + .02 * (first.to - first.from));
    else view.ask();
    view.arrows = arrows.checked;
    seek();
    document.body.dataset.ready = "yes";
  }, error => frame.replaceWith(make("p", {class: "problem"}, `The timeline cannot be shown: ${error}`)));
  return Object.assign(box, {
    ready,
    onView(told) { watching.push(told); },
    async goToTime(t) { await ready; if (!view) return; const first = steps.find(step => t >= step.from && t < step.to), wide = first ? first.to - first.from : facts.end; view.show(t - wide / 2, t + wide / 2); see(box, canvas); },
    async goToStep(step) { await ready; if (!view) return; const from = 1e6 * step.start_ms - facts.origin; view.show(from, from + 1e6 * step.ms); see(box, canvas); },
    async goToWait(entry) {
      await ready;
      if (!view) return;
      const file = entry.path ? `${entry.path.replace(/^.*[\\/]/, "")}:${entry.line} ` : entry.module ? `${entry.module} ` : "";
      const ops = entry.op.split(", "), match = view.events.waits.filter(i => ops.some(op => view.events.nameOf(i) === file + op));
      const first = usual(steps);
      see(box, canvas);
      view.select(match.find(i => first && view.events.start[i] >= first.from) ?? match[0]);
    },
  });
}

function see(box, canvas) {
  box.scrollIntoView({block: "start"});
  canvas.focus({preventScroll: true});
}

/** The step that is the most like the others: of the inner ones that whose length is nearest to the median. */
function usual(steps) {
  const inner = steps.length > 2 ? steps.slice(1, -1) : steps, median = inner.map(step => step.ms).sort((a, b) => a - b)[inner.length >> 1];
  return inner.reduce((best, step) => !best || Math.abs(step.ms - median) < Math.abs(best.ms - median) ? step : best, null);
}

const line = (events, i) => `${events.nameOf(i)} · ${events.kindOf(i)} · ${time(events.duration[i])} · at ${time(events.start[i])}`;

function details(events, i, steps, go) {
  const step = steps.find(one => events.start[i] >= one.from && events.start[i] < one.to), lane = events.lanes[events.row(i).lane];
  const jump = n => make("button", {type: "button", class: "link", onclick: () => go(n)}, quoted(events, n));
  const facts = [["takes", time(events.duration[i])], ["begins", `at ${time(events.start[i])}${step ? `, ${time(events.start[i] - step.from)} into ${step.label}` : ""}`], ["on", lane.label]];
  if (events.link[i] >= 0) facts.push([events.kind[i] === events.WAIT ? "waits for" : "launched by", jump(events.link[i])]);
  const works = events.kindOf(i) === "call" ? events.launched(i) : [];
  if (works.length) facts.push(["launches", [jump(works[0]), works.length > 1 ? ` and ${works.length - 1} more` : ""]]);
  const parent = events.parent(events.isDevice(i) && events.link[i] >= 0 ? events.link[i] : i);
  if (parent >= 0) facts.push(["in", jump(parent)]);
  const chain = heldUp(events, i);
  return make("div", {class: "card"}, make("h3", {}, events.nameOf(i), " ", make("span", {class: "kind"}, events.kindOf(i))), make("dl", {}, facts.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    chain.length ? [make("h4", {}, "What held this up"), make("ol", {class: "chain"}, chain.map(([words, n]) => make("li", {}, words, " ", n >= 0 && make("button", {type: "button", class: "link", onclick: () => go(n)}, "show"))))] : "");
}

function statistics(events, [from, to], go) {
  const length = to - from, rows = pick => events.rows.filter(row => pick(events.lanes[row.lane]) && row.depth === 0);
  const devices = [...new Set(events.lanes.map(lane => lane.device))].filter(device => device >= 0).sort();
  const waits = events.waits.filter(i => events.over(i) > from && events.start[i] < to);
  const all = events.summary(from, to), device = all.filter(one => one.device).slice(0, 8), host = all.filter(one => !one.device).slice(0, 8);
  const columns = [{name: "name", left: true, text: one => make("button", {type: "button", class: "link clip", onclick: () => go(one.example)}, one.name), tell: one => one.name}, {name: "kind", left: true, text: one => one.kind}, {name: "number", text: one => count(one.count)}, {name: "time", text: one => time(one.time)}, {name: "of it", title: "part of the selected time", text: one => percent(one.time / length)}];
  return make("div", {class: "card"}, make("h3", {}, `${time(length)} selected`),
    make("p", {}, devices.map(number => `device${devices.length > 1 ? ` ${number}` : ""} busy ${percent(events.covered(rows(lane => lane.device === number), from, to) / length)}`).join(", "), devices.length ? "; " : "", `${three(waits.length)} waits of the host, ${time(events.covered(rows(lane => lane.waits), from, to))}`),
    make("div", {class: "pair"}, device.length ? make("div", {}, make("h4", {}, "On the device"), table(columns, device, "Selected device work")) : "", host.length ? make("div", {}, make("h4", {}, "On the host"), table(columns, host, "Selected events of the host")) : ""));
}
