import {fixed, largest, make, msTime, percent, prose, section, within} from "./dom.js";

/** What would help, the most first: a bar to what a step takes, its interval, its bound, and what to write. */
export function whatIf(model) {
  if (!model.what_if?.length) return null;
  const per = model.steps.length ? "step" : "recording", step = model.saving_step_ms || 1;
  const most = largest(model.what_if.map(one => Math.max(one.bound_ms, one.high_ms, one.saving_ms)), 1e-9);
  const rows = model.what_if.map((one, number) => {
    const {low_ms: low, high_ms: high} = one, at = ms => `${100 * Math.min(1, Math.max(0, ms) / most)}%`;
    const known = model.page.foretold[number];
    const told = !known ? `at most ${msTime(one.bound_ms)} less a ${per}` : `${msTime(one.saving_ms)} (${percent(one.saving_ms / step)}) less a ${per}, ${within(low, high)}, at most ${msTime(one.bound_ms)}`;
    return make("li", {class: one.first ? "most" : null},
      make("div", {class: "if"}, make("span", {class: "words"}, `if ${one.name}`), make("b", {}, known ? percent(one.saving_ms / step) : ""), make("span", {class: "ms"}, known ? `${fixed(one.saving_ms)} ms` : `< ${msTime(one.bound_ms)}`)),
      make("div", {class: "reach", role: "img", "aria-label": told, title: told}, make("i", {class: "bound", style: {width: at(one.bound_ms)}}), known && make("i", {class: "saves", style: {width: at(one.saving_ms)}}), known && make("i", {class: "whisker", style: {left: at(low), width: `calc(${at(high)} - ${at(low)})`}})),
      make("p", {class: "advice"}, prose(one.advice), known && low < 0 ? make("span", {class: "faint"}, `. A ${per} may be ${within(low, high)}.`) : ""),
      one.lines.length ? make("p", {class: "faint where"}, one.lines.map((line, n) => [n ? ", " : "", make("span", {title: `${line.path}:${line.line}`}, `${line.path.split(/[\\/]/).pop()}:${line.line}`)])) : "");
  });
  const loops = Math.max(...model.what_if.map(one => one.loops ?? 0));
  const like = loops ? `: of the waits the answer's; of the others it held four in five of ${loops} loops that were changed for real, all on one GPU` : "";
  const said = model.uses ? make("p", {class: "faint"}, "A row says what a replay saves. That is not its part of where a step goes: there, idle time after a wait is the wait's, and here device work that was launched for what goes, goes with it.") : "";
  return section("what-if", "What would help", `How much shorter a ${per} of ${msTime(model.saving_step_ms)} is then. The pale bar is what it cannot exceed, the black line the interval${like}.`, make("ol", {class: "what-if"}, rows), said);
}
