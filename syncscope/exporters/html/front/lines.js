import {decision, planned} from "./answer.js";
import {editorLink, editorChoice} from "./editors.js";
import {measured} from "./verified.js";
import {fixed, largest, make, msTime, percent, prose, section, tail, three, under, within} from "./dom.js";

const COLUMNS = [
  ["count", "syncs", "How often a step makes the host wait there."],
  ["blocked_ms", "blocked", "ms a step that the call held the host: neither what it costs nor what fixing it saves."],
  ["idle_after_ms", "idle after", "ms a step that the device had nothing to do because the host had waited there."],
  ["saved_alone_ms", "alone", "ms that a step is shorter if only this line is fixed."],
  ["saved_last_ms", "last", "ms that a step is shorter if this line is fixed after all others."],
  ["share_ms", "share", "ms: its fair part of what fixing all of them saves (Shapley); below it, in percent of a step, what it lies between in four of five recordings like this one."],
  ["of", "of a step", "The share as a part of the step."],
];

/** Where the host waits: a row for each line, and below it its source, the rewrite and the proof. */
export function lines(model, goToWait) {
  const per = model.steps.length ? "step" : "recording";
  const box = section("lines", "Lines that wait", model.lines.length ? `ms a ${per}; a line opens with its source, what it saves and its rewrite` : null);
  if (!model.lines.length) {
    box.append(make("p", {}, (model.coverage ? !model.coverage.enough : model.fidelity === null) ? `This recording cannot show where the host waits: ${model.coverage?.why_not ?? "nothing is known of it"}.` : "The host waited for the device nowhere in this recording."));
    return Object.assign(box, {open: () => {}});
  }
  const priced = model.lines.some(line => line.share_ms !== null);
  const columns = COLUMNS.filter(([key]) => priced || ["count", "blocked_ms", "idle_after_ms"].includes(key));
  const entries = model.lines.map((line, number) => ({line, number, of: line.share_ms !== null && model.saving_step_ms ? line.share_ms / model.saving_step_ms : null, turn: turn(model, line)}));
  const most = largest(entries.map(entry => entry.of || 0), 1e-9);
  const body = make("tbody"), told = make("output", {class: "hidden", "aria-live": "polite"});
  const filter = make("input", {type: "search", placeholder: "filter: path, op, rule", "aria-label": "Filter lines", oninput: () => draw()});
  let sorted = {key: null, down: true};
  const opened = new Set();
  const heads = columns.map(([key, name, title]) => make("th", {scope: "col", title, "aria-sort": "none", "data-key": key},
    make("button", {type: "button", onclick: () => { sorted = {key, down: sorted.key === key ? !sorted.down : true}; draw(); }}, name)));
  const rows = entries.map(entry => row(model, entry, columns, most, goToWait, opened, () => draw()));

  function draw() {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = entries.filter(({line}) => wanted.every(word => `${line.path}:${line.line} ${line.caller ? `${line.caller.path}:${line.caller.line}` : ""} ${line.op} ${line.rule} ${line.module} ${line.function}`.toLowerCase().includes(word)));
    const value = entry => sorted.key === "of" ? entry.of : entry.line[sorted.key];
    if (sorted.key) shown.sort((a, b) => (sorted.down ? -1 : 1) * ((value(a) ?? -1) - (value(b) ?? -1)));
    for (const head of heads) head.setAttribute("aria-sort", head.dataset.key !== sorted.key ? "none" : sorted.down ? "descending" : "ascending");
    body.replaceChildren(...shown.flatMap(({number}) => opened.has(number) ? [rows[number].head, rows[number].more()] : [rows[number].head]));
    for (const {number} of shown) rows[number].button.setAttribute("aria-expanded", opened.has(number));
    told.textContent = `${shown.length} of ${entries.length} lines`;
    if (!shown.length) body.append(make("tr", {}, make("td", {colspan: columns.length + 1, class: "left"}, "no line matches")));
  }
  box.append(make("div", {class: "tools"}, filter, editorChoice(() => { for (const one of rows) one.forget(); draw(); }), told),
    make("table", {class: "lines"}, make("caption", {class: "hidden"}, "Lines that wait"),
      make("thead", {}, make("tr", {}, make("th", {scope: "col", class: "left"}, "line"), heads)), body),
    ...callers(model), legend(priced, model.plan.length > 0), ...unseen(model));
  draw();
  return Object.assign(box, {
    open(number) {
      filter.value = "";
      opened.add(number);
      draw();
      rows[number].head.scrollIntoView({block: "start", behavior: "smooth"});
      rows[number].button.focus({preventScroll: true});
    },
  });
}

/** What one line of the user's leads to in libraries, added up. */
const callers = model => model.groups.filter(group => group.kind === "caller").map(group => ({group, lines: model.lines.filter(line => line.caller && `${line.caller.path}:${line.caller.line}` === group.name).length})).filter(({lines}) => lines > 1)
  .map(({group, lines}) => make("p", {class: "faint"}, make("b", {}, tail(group.name)), ` leads to ${lines} of these lines: ${three(group.count)} syncs, blocked ${msTime(group.blocked_ms)}, together ${msTime(group.share_ms)} of a step`));

const turn = (model, line) => model.plan.findIndex(one => planned(model, one)(line)) + 1;
export const nameOf = line => line.path ? `${line.path}:${line.line}` : line.module ? `in ${line.module}` : "no line known";

function row(model, entry, columns, most, goToWait, opened, draw) {
  const {line, number, of} = entry;
  const code = source(model, line.path).find(([n]) => n === line.line);
  const long = nameOf(line), name = tail(long), cut = name.lastIndexOf("/") + 1;
  const button = make("button", {type: "button", class: "place", "aria-expanded": false, "aria-controls": `line-${number}`, title: long, onclick: () => {
    if (!opened.delete(number)) opened.add(number);
    draw();
    button.focus();
  }}, make("span", {class: "folder"}, name.slice(0, cut)), make("span", {class: "file"}, name.slice(cut)));
  const about = line.fallback ? "no sync on CUDA: ocl has no such operator, and the CPU ran it" : line.rule || "no rule knows this line";
  const head = make("tr", {class: of === null ? "" : of >= .05 ? "much" : of < .005 ? "nothing" : "", id: `row-${number}`},
    make("td", {class: "left what", "data-label": "line"},
      make("div", {}, line.answer ? [decision(line.answer), " "] : "", entry.turn ? make("span", {class: "turn", title: "the order in which to fix them, for most of what can be had"}, `${entry.turn}.`) : "", button, make("span", {class: "op"}, line.op)),
      code && !line.function ? make("code", {class: "code"}, code[1].trim()) : "",
      line.caller ? make("div", {class: "about"}, `called from ${tail(line.caller.path)}:${line.caller.line}`) : "",
      make("div", {class: "about"}, later(model, entry) ? "by itself; fix it once those before it are gone · " : "", line.function ? `somewhere in ${line.function}(); ` : "", make("span", {class: "rule"}, about), line.fix ? [" · ", line.fix.title, " ", make("span", {class: `safety ${line.fix.safety}`}, line.fix.safety)] : "")),
    columns.map(([key, name, title]) => make("td", {"data-label": name, title: `${title}`, class: key},
      key === "of" ? [make("span", {class: "part-bar", "aria-hidden": "true"}, make("i", {style: {width: `${100 * Math.max(0, of || 0) / most}%`}})), percent(of)]
        : key === "count" ? three(line.count)
        : key === "share_ms" ? [fixed(line.share_ms), line.answer && line.answer.low !== null ? make("span", {class: "range"}, between(line.answer, of)) : ""]
        : fixed(line[key]))));
  let made = null;
  return {head, button, more: () => made ||= make("tr", {class: "more", id: `line-${number}`}, make("td", {colspan: columns.length + 1, class: "left"}, details(model, line, goToWait))), forget() { made = null; }};
}

/** What a share lies between, with itself, and with the share that stands above it. */
const between = ({share, low, high}, above) => {
  const shares = [share !== null && low <= share && share <= high ? share : null, above].filter(one => one !== null);
  return `${Math.min(Math.round(100 * low), ...shares.map(one => Math.floor(100 * one)))} to ${Math.max(Math.round(100 * high), ...shares.map(one => Math.ceil(100 * one)))} %`;
};

/** Whether a line of the plan is not worth it by itself, but once those before it are gone. */
const later = (model, {line, turn}) => turn > 0 && line.answer?.decision === "leave" && model.lines.some(other => other.answer && other.answer.decision !== "leave");

/** Each way in which a line waits, where there are several: `to`, and `to_device`. */
const ways = (model, line) => line.op.includes(", ") ? model.reads.filter(read => read.path === line.path && read.line === line.line && read.function === line.function && line.op.split(", ").includes(read.op)) : [];

/** The same interval in ms, in brackets; where only the recording itself tells one, that. */
const reach = ({saving_step_ms: step}, {answer, share_range_ms: own}) => answer?.low != null && step ? ` (${within(answer.low * step, answer.high * step)})` : own ? ` (${within(...own)})` : "";

/** `[number, text]` of the lines of a file that are at hand. */
export const source = (model, path) => (under(model.page.source, path) || []).flatMap(([first, texts]) => texts.map((text, n) => [first + n, text]));

function details(model, line, goToWait) {
  const link = editorLink(model.page.folder, line.path, line.line);
  const parts = [make("p", {class: "go"}, make("button", {type: "button", onclick: () => goToWait(line)}, "Show in the timeline"), link ? [" ", link] : "")];
  const near = excerpt(model, line);
  if (near) parts.push(near);
  else parts.push(make("p", {class: "faint"}, line.path ? "Its source is not at hand: report --source DIR names the folder in which it lies." : "The recording does not have its line."));
  const modes = [["deferred_ms", "the value is read one step later"], ["merged_ms", "the syncs of a step are made one, at the last of them"], ["asynchronous_ms", "the copy is made beside the work, and waited for at the end of the step"]]
    .filter(([key]) => line[key] !== null && line[key] !== undefined);
  if (line.share_ms !== null) parts.push(make("div", {class: "price"}, make("h3", {}, "Saves"), make("p", {}, "A step is ", make("b", {}, msTime(line.share_ms)), ` shorter by its fair share${reach(model, line)}`, line.answer && line.answer.why ? ["; ", prose(line.answer.why)] : "",
    line.saved_alone_ms !== null ? `; ${msTime(line.saved_alone_ms)} if only this line is fixed, ${msTime(line.saved_last_ms)} after all others.` : "."),
    modes.length ? make("ul", {}, modes.map(([key, words]) => make("li", {}, `${msTime(line[key])} if ${words}`))) : ""));
  const each = ways(model, line);
  if (each.length > 1) parts.push(make("ul", {class: "ways"}, each.map(read => make("li", {}, read.answer ? [decision(read.answer), " "] : "", make("span", {class: "op"}, read.op), `: ${three(read.count)} syncs`, read.share_ms !== null ? `, ${msTime(read.share_ms)} of a step` : ""))));
  if (line.fix) parts.push(rewrite(line.fix));
  else if (line.rule) parts.push(make("p", {}, `No rewrite is known here; `, make("code", {}, `syncscope explain ${line.rule}`), " has the page of the rule."));
  for (const fix of tried(model, line)) parts.push(proof(fix));
  return make("div", {class: "details"}, parts);
}

/** Source around a line, what each line costs in the gutter. */
function excerpt(model, line) {
  const texts = source(model, line.path).filter(([n]) => Math.abs(n - line.line) <= 7);
  if (!texts.length) return null;
  const cost = new Map();
  for (const other of model.lines) if (other.path === line.path && !other.function) cost.set(other.line, other);
  const most = largest([...cost.values()].map(other => other.share_ms ?? other.idle_after_ms), 1e-9);
  return make("div", {class: "source", tabindex: 0, role: "region", "aria-label": `Source of ${line.path}`}, make("table", {}, make("tbody", {}, texts.map(([number, text]) => {
    const there = cost.get(number), ms = there ? there.share_ms ?? there.idle_after_ms : null;
    return make("tr", {class: number === line.line ? "here" : null},
      make("td", {class: "gutter", title: there ? `${there.op}: ${there.share_ms !== null ? `share ${msTime(there.share_ms)}` : `idle after ${msTime(there.idle_after_ms)}`}, ${three(there.count)} syncs, blocked ${msTime(there.blocked_ms)}` : null},
        ms !== null ? [make("i", {style: {width: `${Math.max(2, 100 * Math.max(0, ms) / most)}%`}}), make("span", {}, msTime(ms))] : ""),
      make("td", {class: "number"}, String(number)), make("td", {class: "text"}, make("code", {}, text || " ")));
  }))));
}

function rewrite(fix) {
  const kind = text => /^(---|\+\+\+) /.test(text) ? "file" : text.startsWith("+") ? "added" : text.startsWith("-") ? "removed" : text.startsWith("@@") ? "hunk" : "";
  return make("div", {class: "rewrite"}, make("h3", {}, "Rewrite"), make("p", {}, fix.title, " ", make("span", {class: `safety ${fix.safety}`}, fix.safety), fix.changes ? [": ", prose(fix.changes)] : ""),
    fix.diff ? make("pre", {class: "diff", tabindex: 0, "aria-label": "The rewrite as a diff"}, fix.diff.trimEnd().split("\n").map(text => make("span", {class: kind(text)}, `${text}\n`))) : "");
}

/** What `syncscope verify` tried at a line. */
const tried = (model, line) => (model.verified?.fixes || []).filter(fix => line.path && fix.line === line.line && (fix.path === line.path || fix.path.endsWith(`/${line.path}`) || line.path.endsWith(`/${fix.path}`)));

function proof(fix) {
  return make("div", {class: "proof"}, make("h3", {}, "Proof"), make("p", {}, fix.kept ? make("b", {class: "good"}, "kept") : make("b", {class: "bad"}, "not kept"), `: ${measured(fix)}`, fix.why ? [". ", prose(fix.why)] : ""));
}

function legend(priced, planned) {
  const said = [planned && ["1. 2. …", "the order in which to fix them, for most of what can be had"], ...COLUMNS.filter(([key]) => priced || ["count", "blocked_ms", "idle_after_ms"].includes(key)).map(([, name, title]) => [name, title])].filter(Boolean);
  return make("details", {class: "legend"}, make("summary", {}, "what the figures mean"), make("dl", {}, said.map(([name, words]) => [make("dt", {}, name), make("dd", {}, words)])));
}

function unseen(model) {
  const cold = model.findings.filter(finding => finding.ran === false), unknown = model.lines.filter(line => !line.rule && !line.fallback).length;
  const parts = [];
  if (unknown && model.findings.length) parts.push(make("p", {class: "faint"}, `${unknown} of ${model.lines.length} lines wait in a way that the linter does not know.`));
  if (cold.length) parts.push(make("details", {}, make("summary", {}, `${cold.length} finding${cold.length === 1 ? "" : "s"} in code of each step did not wait here${model.page.unseen_elsewhere ? `; nor did ${model.page.unseen_elsewhere} in other code` : ""}`),
    make("ul", {class: "findings"}, cold.map(finding => make("li", {}, make("b", {}, `${finding.path}:${finding.line}`), ` ${finding.rule}: `, prose(finding.message))))));
  return parts;
}
