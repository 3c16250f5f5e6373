import {rankLanes} from "./rank_lanes.js";
import {largest, make, msTime, section, smallest, table} from "./dom.js";

const MOST = 400;
const USES = {busy: "busy", compute: "compute", overlapped: "of it overlapped", copy: "copies alone", exposed: "exposed communication", idle: "idle"};

/** The ranks of a job: a heat map of step by rank, and who waited for whom. */
export function ranks(model, id = "ranks", title = "Ranks") {
  const job = model.ranks;
  if (!job) return null;
  const box = section(id, title, `${job.ranks.length} ranks, ${job.meets.length} collectives; a step of the job takes ${msTime(job.step / 1e6)}`);
  if (job.timeline) box.append(rankLanes(job.timeline));
  const steps = [...new Set(job.steps.flatMap(([, list]) => list.map(([index]) => index)))].sort((a, b) => a - b);
  box.append(heat("How long each step took on each rank", "ms", job.steps.map(([rank, list]) => [rank, new Map(list)]), steps, ms => msTime(ms)));
  const known = job.ranks.filter(rank => rank.times), part = key => ({name: USES[key], text: rank => `${msTime(rank.times[key] / 1e6)}, ${Math.round(100 * rank.times[key] / (rank.times.step || 1))} %`});
  if (known.length) box.append(make("h3", {class: "spaced"}, "Where a step of each rank goes"), table([{name: "rank", text: rank => String(rank.number)}, {name: "step", text: rank => msTime(rank.times.step / 1e6)}, ...Object.keys(USES).map(part), {name: "mostly", left: true, text: rank => rank.times.why[0]?.[0] || ""}], known.slice(0, MOST), "Where a step of each rank goes"));
  const late = new Map(job.ranks.map(rank => [rank.number, new Map()]));
  for (const meet of job.meets) {
    const step = Number(meet.key.split("/")[0]);
    for (const owed of meet.owed) {
      const row = late.get(owed.rank);
      if (row) row.set(step, (row.get(step) || 0) + owed.time / 1e6);
    }
  }
  const met = [...new Set(job.meets.map(meet => Number(meet.key.split("/")[0])))].sort((a, b) => a - b);
  if (met.length) box.append(heat("How long the others waited for a rank, in sum", "late", [...late], met, msTime));
  box.append(table([{name: "rank", text: rank => String(rank.number)}, {name: "blocked", title: "in syncs, in all", text: rank => msTime(rank.blocked / 1e6)}, {name: "of it for others", title: "what its syncs waited because other ranks were late", text: rank => msTime(rank.symptom / 1e6)},
    {name: "comes last", text: rank => rank.late ? `${rank.late} time${rank.late === 1 ? "" : "s"}` : ""}, {name: "others wait", text: rank => rank.late ? msTime(rank.imposed / 1e6) : ""}, {name: "mostly by", left: true, text: rank => rank.cause}, ...(job.ranks.some(rank => rank.lines.length) ? [{name: "most at", left: true, text: rank => rank.lines.length ? make("code", {class: "clip"}, rank.lines[0].name.split(/[(<]/)[0]) : ""}] : []), {name: "saved if only it never syncs", title: "what the job gains a step", text: rank => rank.saved_alone === null ? "-" : msTime(rank.saved_alone / 1e6)}],
    [...job.ranks].sort((a, b) => b.imposed - a.imposed).slice(0, MOST), "What each rank waited"));
  const worst = [...job.meets].sort((a, b) => b.skew - a.skew).slice(0, 12);
  if (worst.length) box.append(make("h3", {class: "spaced"}, "Where most was waited"), table([{name: "step", text: meet => named(meet.key)[0]}, {name: "collective", left: true, text: meet => make("code", {class: "clip"}, named(meet.key)[1]), tell: meet => meet.key}, {name: "last after first", text: meet => msTime(meet.skew / 1e6)}, {name: "last is", text: meet => together(meet) ? "-" : `rank ${meet.late}`}, {name: "by", left: true, text: meet => together(meet) ? "-" : meet.cause}, {name: "transfer", text: meet => msTime(meet.transfer / 1e6)}], worst, "Collectives in which most was waited"));
  if (job.lines.length) box.append(make("h3", {class: "spaced"}, "What a line costs the job"), table([{name: "line", left: true, text: line => line.place ? `${line.place.path}:${line.place.line}` : line.module || "no line known"}, {name: "op", left: true, text: line => line.op}, {name: "ranks", text: line => String(line.ranks)}, {name: "syncs", text: line => line.count.toPrecision(3)}, {name: "blocked", title: "on the mean rank, a step", text: line => msTime(line.blocked / 1e6)},
    ...["alone", "last", "share"].map(key => ({name: key, title: "what the job gains a step", text: line => line.price ? msTime(line.price[key] / 1e6) : "-"}))], job.lines.slice(0, 50), "Lines of the job"));
  return box;
}

/** Whether all ranks came to a collective at one moment, as far as clocks can tell: their microseconds. */
const together = meet => meet.skew < 1000;

/** Step and short name of a collective; its key is step/group/kernel/ordinal. What tells two of them apart stands first. */
function named(key) {
  const parts = key.split("/"), step = parts.shift(), ordinal = parts.pop(), group = parts.length > 1 ? parts.shift() : "";
  const kernel = parts.join("/").split(/[(<]/)[0].replace(/^nccl(?:Dev)?Kernel_/, "");
  return [step, [`#${ordinal}`, group, kernel].filter(Boolean).join(" ")];
}

/** Rows of ranks, columns of steps; the darker, the more. The figures stand in each cell for readers of the table. */
function heat(title, name, rows, steps, words) {
  const shown = rows.slice(0, MOST), cut = steps.slice(0, 200), values = shown.flatMap(([, row]) => cut.map(step => row.get(step)).filter(value => value !== undefined)), most = largest(values, 1e-12), least = name === "ms" ? smallest(values) : 0;
  return make("figure", {}, make("figcaption", {}, title), make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": title}, make("table", {class: "heat"}, make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "rank"), cut.map(step => make("th", {scope: "col"}, String(step))))),
    make("tbody", {}, shown.map(([rank, row]) => make("tr", {}, make("th", {scope: "row"}, String(rank)), cut.map(step => {
      const value = row.get(step), heat = value === undefined ? 0 : most > least ? (value - least) / (most - least) : 0;
      return make("td", {title: value === undefined ? null : `rank ${rank}, step ${step}: ${words(value)}`, style: {"--heat": String(Math.round(100 * heat))}}, value === undefined ? "" : make("span", {}, words(value)));
    })))))), rows.length > shown.length ? make("p", {class: "faint"}, `and ${rows.length - shown.length} more ranks`) : "");
}
