import {make, msTime, percent, prose, section, three, within} from "./dom.js";

const LITTLE = .05;  // the part of a step below which something else than waits is what to look at

/** Whether the answer says where a step goes, for waits are not what holds it up. */
export const saysUses = model => model.verdict !== undefined && model.uses && (model.total_saving_ms ?? 0) < LITTLE * (model.saving_step_ms ?? Infinity);

/** Whether a line is that of an entry of the plan, which names one of `reads`: lines that were not recorded differ by their module. */
export const planned = (model, {read}) => line => ["path", "line", "module", "function"].every(key => model.reads[read][key] === line[key]) && line.op.split(", ").includes(model.reads[read].op);

/** The answer in one sentence with its interval, the figures it rests on, and what to do first. */
export function answer(model, goToLine) {
  const [lead, ...others] = sentences(model.verdict);  // of a job of many ranks; a recording's report has both apart
  const first = model.page.lead ?? lead, rest = model.page.further ?? others;
  const box = section("answer", "The answer");
  const other = helpsMore(model), badge = model.answer ? [decision(model.answer), " "] : "";
  box.append(make("p", {class: "verdict"}, badge, prose(first || "")));
  if (other) box.append(...todo(model, other));
  for (const said of model.page.further ? rest : [rest.join(" ")].filter(Boolean)) box.append(make("p", {class: "besides"}, prose(said)));
  if (saysUses(model)) box.append(make("p", {class: "besides more"}, prose(model.uses.words)));
  if (!model.reads) return box;  // a job of many ranks
  const plan = model.plan[0];
  if (plan) {
    const found = model.lines.findIndex(planned(model, plan)), {module} = model.reads[plan.read];
    const name = plan.path ? `${plan.path.split(/[\\/]/).pop()}:${plan.line}` : module ? `${plan.op} in ${module}` : plan.op;
    const {fix = null, rule = null} = model.lines[found] ?? {};
    box.append(make("p", {class: "first"},
      make("button", {type: "button", class: other ? null : "primary", onclick: () => goToLine(Math.max(found, 0))}, `${other ? "Of the waits first" : "First"}: ${name}`),
      " ", fix ? `${fix.title} (${fix.safety})` : rule ? prose(`\`syncscope explain ${rule}\` shows what people write`) : ""));
  }
  if (model.total_saving_ms !== null && model.saving_step_ms) box.append(promise(model));
  box.append(figures(model));
  return box;
}

/** What is to be done first, in a sentence, and what to write. */
const todo = (model, one) => [
  make("p", {class: "verdict"}, `If ${one.name}, a ${model.steps.length ? "step" : "recording"} ${shorter(model, one)}.`),
  make("p", {class: "first"}, make("button", {type: "button", class: "primary", onclick: () => document.getElementById("what-if")?.scrollIntoView({behavior: "smooth"})}, model.page.replay_holds ? "First" : "Try"), " ", prose(one.advice)),
];

/** How much shorter a step is; where no replay holds, by how much at most. */
const shorter = (model, one) => model.page.foretold[model.what_if.indexOf(one)] ? `${one.low_ms < one.high_ms ? "may be" : "is"} ${msTime(one.saving_ms)} (${percent(one.saving_ms / model.saving_step_ms)}) shorter` : `may be shorter, by at most ${msTime(one.bound_ms)}`;

/** What is to be done first, where that saves more than all waits cost. */
const helpsMore = model => (model.what_if ?? []).find(one => one.first && model.saving_step_ms && one.saving_ms > 1.001 * (model.answer?.share ?? 0) * model.saving_step_ms);

/** One of the four words, and why when it is pointed at. */
export const decision = answer => make("span", {class: `decision ${answer.decision}`, title: answer.why}, answer.decision);

/** The ends of what a saving lies between, ms. */
const ends = model => model.answer && model.answer.low !== null && model.saving_step_ms ? [model.answer.low, model.answer.high].map(share => share * model.saving_step_ms) : model.total_saving_range_ms;

/** What a step is shorter without waits, ms, as the answer says. */
const likely = model => model.answer?.share != null && model.saving_step_ms ? model.answer.share * model.saving_step_ms : model.total_saving_ms;

/** Sentences of a text; a full stop within a name or a number ends none. */
function sentences(text) {
  return text.split(/(?<=[.!?]) (?=[A-Z])/);
}

function figures(model) {
  const seen = model.coverage?.enough ?? true;
  const own = model.lines.filter(line => !line.fallback), reads = own.reduce((sum, line) => sum + line.count, 0);
  const lent = model.lines.reduce((sum, line) => sum + line.count, 0) - reads;
  const blocked = model.lines.reduce((sum, line) => sum + line.blocked_ms, 0);
  const lengths = model.steps.map(step => step.ms);
  const per = model.steps.length ? "step" : "recording";
  const between = lengths.length > 1 && model.step_range_ms ? model.step_range_ms.map(msTime).join(" to ") : "";
  const counted = model.page.counted && model.page.counted < lengths.length ? `, ${model.page.counted} counted` : "";
  const cells = [
    model.step_ms !== null && [msTime(model.step_ms), "a step", `${lengths.length} recorded${counted}${between && `: ${between}`}`,
      "How long a step took as recorded, from the end of the one before it: the mean, the shortest and the longest of those counted, without the first, the last and those that warm up."],
    model.device_busy !== null && [model.busy_by_device.map(one => percent(one.busy)).join(", ") || percent(model.device_busy), model.busy_by_device.length ? "of devices busy" : "device busy", seen ? `the host waits ${msTime(blocked)} of a ${per}` : `how long the host waits is not known`,
      "The share of the steps in which any queue of any device worked." + model.busy_by_device.map(one => ` Device ${one.device}: ${percent(one.busy)}.`).join("")],
    seen && [three(reads), `syncs a ${per}`, `on ${own.length} line${own.length === 1 ? "" : "s"}${lent > 0 ? `; ${three(lent)} of ocl's own, which lacks an operator` : ""}`,
      "How often the host waits for the device. One .item() is one sync, however many calls into the driver it takes."],
    model.total_saving_ms !== null && [msTime(likely(model)), "shorter without waits", `${ends(model) ? `${within(...ends(model))}, ` : ""}of ${msTime(model.saving_step_ms)}`,
      "How much shorter a step likely is if no sync waits, what that lies between, and how long a step is in a replay that changes nothing, without what the recorder took."],
    model.fidelity !== null && [model.fidelity < 1e-4 ? "< 0.01 %" : percent(model.fidelity), "replay error", `${percent(model.unexplained || 0)} late for no recorded reason`,
      "How far a replay in which nothing is changed is from the recording. Above 5 % nothing is said of single lines."],
  ].filter(Boolean);
  return make("dl", {class: "figures"}, cells.map(([figure, name, more, title]) =>
    make("div", {title}, make("dt", {}, name), make("dd", {}, make("b", {}, figure), make("span", {}, more)))));
}

/** A step now, and without the waits of the plan (or of all): bars to one scale, with what it lies between. */
function promise(model) {
  const planned = model.plan.length > 0, saving = planned ? model.plan_saving_ms : model.total_saving_ms;
  const range = ends(model) || [saving, saving];
  const now = model.saving_step_ms, then = now - saving, share = ms => `${100 * Math.max(0, Math.min(1, ms / now))}%`;
  const places = new Set(model.plan.map((line, n) => line.path ? `${line.path}:${line.line}` : n)).size;  // several waits may be one line's, as in the sentence above
  const what = planned ? `${places === 1 ? "one line" : `${places} lines`} fixed` : "no waits";
  const [low, high] = [now - range[1], now - range[0]];
  const bar = (name, ms, told, whisker) => [make("dt", {}, name),
    make("dd", {title: told}, make("i", {class: whisker ? "then" : "now", style: {width: share(ms)}}),
      whisker && make("i", {class: "whisker", style: {left: share(low), width: `${100 * Math.max(0, high - low) / now}%`}}), make("span", {}, told))];
  return make("dl", {class: "promise", "aria-label": "A step now, and as the replay gives it"},
    bar("now", now, msTime(now), false),
    bar(what, then, `${msTime(then)} (${msTime(low)} to ${msTime(high)})`, true));
}
