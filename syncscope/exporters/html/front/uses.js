import {saysUses} from "./answer.js";
import {make, msTime, percent, section} from "./dom.js";

/** Where a step goes: one bar of 100 %, each part with what is behind it. */
export function uses(model) {
  if (!model.uses) return null;
  const {parts, step_ms, words} = model.uses;
  const shown = parts.filter(part => part.ms > 0);
  const per = model.steps.length ? "step" : "recording";
  const bar = make("div", {class: "stack", role: "img", "aria-label": shown.map(part => `${part.words} ${percent(part.ms / step_ms)}`).join(", ")},
    shown.map(part => make("i", {class: `use-${part.use}`, style: {"flex-grow": part.ms}, title: `${part.words}: ${msTime(part.ms)}, ${percent(part.ms / step_ms)} of a ${per}`},
      part.ms / step_ms > .08 ? make("span", {}, percent(part.ms / step_ms)) : "")));
  const rows = parts.filter(part => part.ms > 0 || part.use === "unexplained").map(part => make("li", {},
    make("div", {class: "part", title: TOLD[part.use]}, make("i", {class: `swatch use-${part.use}`}), make("span", {class: "words"}, part.words),
      make("span", {class: "ms"}, msTime(part.ms)), make("b", {class: "share"}, percent(part.ms / step_ms))),
    part.by.length ? make("details", {}, make("summary", {}, part.by.length === 1 ? part.by[0].name : `${part.by[0].name} and ${part.by.length - 1} more`),
      make("ul", {}, part.by.map(one => make("li", {}, make("span", {class: "name"}, one.name), make("span", {class: "ms"}, msTime(one.ms)), make("span", {class: "share"}, percent(one.ms / step_ms)))))) : ""));
  return section("uses", `Where a ${per} goes`, `of ${msTime(step_ms)}, as recorded`, saysUses(model) ? "" : make("p", {class: "follows"}, words), bar, make("ul", {class: "parts"}, rows));
}

export const TOLD = {
  compute: "A kernel of any queue runs.",
  copy: "Copies and fills run, and no kernel.",
  collective: "Only kernels of the collectives library run: they move data, or wait until other ranks have come.",
  wait: "The host had been blocked in a sync and was as much later with its next launch: so much of the idle time after it is the sync's.",
  loader: "The host was in the data loader.",
  launch: "The host was in the calls that launch work, or the work was on its way to the device.",
  host: "The host did something else: Python, operators, the optimizer.",
  queue: "The work was enqueued already: the time from one kernel to the next, or from one queue to another.",
  unexplained: "Work began late, or a call returned late, for no reason that was recorded.",
};
