import {answer} from "./answer.js";
import {byLine} from "./by_line.js";
import {comparison} from "./comparison.js";
import {lines} from "./lines.js";
import {kept, make, prose} from "./dom.js";
import {memory} from "./memory.js";
import {overview} from "./overview.js";
import {ranks} from "./ranks.js";
import {steps} from "./steps.js";
import {timeline} from "./timeline.js";
import {uses} from "./uses.js";
import {whatIf} from "./what_if.js";
import {work} from "./work.js";

const TITLES = {answer: "Answer", "what-if": "What if", uses: "Step", "by-line": "By line", lines: "Lines", steps: "Steps", timeline: "Timeline", memory: "Memory", work: "Kernels", comparison: "Comparison", ranks: "Ranks", runs: "Runs", notes: "Notes"};

/** The page of one recording in an element; `events` is the packed text of the timeline, `runs` a section and `choose` a control made
elsewhere. */
export function showPage(root, model, events, runs = null, choose = null) {
  theme(kept.get("theme"));
  let look = null, list = null;
  look = timeline(model, model.timeline, events);
  list = model.lines && lines(model, line => look?.goToWait(line));
  const goToStep = step => look?.goToStep(step);
  const two = model.comparison ? comparison(model) : null;
  two?.append(make("p", {class: "faint"}, `What follows is of ${model.comparison.after_name} alone.`));
  const sections = [...overview(model), two, model.verdict !== undefined && answer(model, number => list.open(number)), whatIf(model), uses(model), byLine(model), list, steps(model, goToStep), look, memory(model, look), work(model), two ? null : comparison(model), ranks(model), runs, notes(model)].filter(Boolean);
  const nav = make("nav", {"aria-label": "Sections"}, sections.map(box => [box.id, TITLES[box.id] || box.querySelector("h2").textContent]).map(([id, name]) => make("a", {href: `#${id}`, onclick: event => { event.preventDefault(); document.getElementById(id).scrollIntoView({behavior: "smooth"}); }}, name)));
  root.replaceChildren(
    make("header", {}, make("div", {class: "bar"}, make("span", {class: "brand"}, "syncscope"), choose, nav, themeButton()),
      make("h1", {title: model.name}, two ? `${model.comparison.before_name} and ${model.comparison.after_name}` : model.page.title), model.page.recorded ? make("p", {class: "recorded"}, model.page.recorded) : ""),
    make("main", {}, sections));
  addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
  if (!look) document.body.dataset.ready = "yes";
}

function notes(model) {
  const trace = model.coverage ? [`The trace: ${model.coverage.words}.`] : [];
  if (!model.notes.length && !trace.length) return null;
  return make("section", {id: "notes", "aria-labelledby": "notes-title"}, make("h2", {id: "notes-title"}, "Notes"), make("ul", {}, [...trace, ...model.notes].map(note => make("li", {}, prose(note)))));
}

function theme(name) {
  if (name === "dark" || name === "light") document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}

function themeButton() {
  return make("button", {type: "button", class: "theme", title: "light or dark", "aria-label": "Switch between light and dark", onclick: () => {
    const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1", next = dark ? "light" : "dark";
    theme(next);
    kept.set("theme", next);
    dispatchEvent(new Event("resize"));
    document.querySelector("#timeline")?.view?.ask();
  }}, "◐");
}
