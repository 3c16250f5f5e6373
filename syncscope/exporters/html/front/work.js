import {count, fixed, make, msTime, percent, prose, section, short, table, three, time} from "./dom.js";
import {roofline} from "./roofline.js";

const FIRST = 12;

/** Kernels and operators, and how near they come to what the device can do. */
export function work(model) {
  if (!model.work || !model.work.kernels.length) return null;
  const {kernels, operators, ceilings} = model.work, total = kernels.reduce((sum, line) => sum + line.ms, 0);
  const per = model.steps.length ? "step" : "recording";
  const box = section("work", "Kernels and operators", `${msTime(total)} of device time a ${per}, queues added up`);
  const known = operators.filter(line => line.bound).reduce((sum, line) => sum + line.ms, 0);
  const plot = roofline(operators, ceilings);
  if (plot) box.append(plot, make("p", {class: "faint"}, ceilings ? `Ceilings: ${count(Math.round(ceilings.bytes_per_s / 1e9))} GB/s, ${three(ceilings.flops_per_s / 1e12)} TFLOPS${ceilings.flops_tf32_per_s ? `, ${count(Math.round(ceilings.flops_tf32_per_s / 1e12))} in TF32` : ""}${ceilings.flops_16_per_s ? `, ${count(Math.round(ceilings.flops_16_per_s / 1e12))} in 16 bits` : ""} (${ceilings.from}). Of the time of operators ${percent(known / Math.max(total, 1e-12))} has known work.`
    : "What the device can do at best is not known here: syncscope roofline --bandwidth GB/s --flops TFLOPS holds the operators against it."));
  else box.append(make("p", {class: "faint"}, prose("The recording has no shapes, so the operations and bytes of its operators are not known: record with `syncscope run --shapes` or `record_shapes=True`.")));
  box.append(make("div", {class: "pair"},
    listed("Kernels", kernels, line => `${line.name} ${line.kind}`, [
      {name: "kernel", left: true, text: line => make("code", {class: "clip"}, short(line.name)), tell: line => line.name},
      {name: "runs", title: `runs a ${per}`, text: line => three(line.count)},
      {name: "ms", title: `ms a ${per}`, text: line => fixed(line.ms)},
      {name: "share", title: "part of the device time of all queues", text: line => percent(line.ms / total)},
      {name: "longest", title: "the longest single run", text: line => msTime(line.longest_ms)}]),
    listed("Operators", operators, line => `${line.op} ${line.shapes}`, [
      {name: "operator", left: true, text: line => [make("code", {class: "clip"}, line.op.replace(/^aten::/, "")), line.shapes ? make("span", {class: "shapes clip"}, line.shapes) : ""], tell: line => `${line.op} ${line.shapes}\n${line.kernels.join("\n")}`},
      {name: "calls", title: `calls a ${per}`, text: line => three(line.count)},
      {name: "ms", title: `ms of the device a ${per}`, text: line => fixed(line.ms)},
      {name: "bound by", title: "the ceiling that it is nearer to; TF32 where its kernels are called so", text: line => line.bound === "arithmetic" && line.arithmetic === "TF32" ? "arithmetic in TF32" : line.bound || "?"},
      {name: "reached", title: "the share of that ceiling; pointed at, why it can be above 100 %", text: line => line.bound ? make("span", {title: line.why}, percent(line.reached), line.why ? make("span", {class: "shapes clip"}, line.why) : "") : "-"}])));
  if (model.work.modules?.length) box.append(byModule(model.work.modules, total, per));
  return box;
}

/** The modules as a tree, each with its work and that of those within it. */
function byModule(modules, total, per) {
  const named = modules.map(line => ({...line, depth: line.path.length - 1, name: own(line.path), whole: line.path.join(" / ")}));
  const inside = named.filter(line => !line.depth).reduce((sum, line) => sum + line.ms, 0);
  return make("div", {}, listed("Modules", named, line => line.whole, [
    {name: "module", left: true, text: line => make("code", {class: "module", style: {"--depth": String(Math.min(12, line.depth))}}, line.name), tell: line => line.whole},
    {name: "ms", title: `ms of the device a ${per} that it and the modules within it launched`, text: line => fixed(line.ms)},
    {name: "share", title: "part of the device time of all queues", text: line => [make("span", {class: "part-bar", "aria-hidden": "true"}, make("i", {style: {width: `${100 * line.ms / Math.max(total, 1e-12)}%`}})), percent(line.ms / total)]},
    {name: "itself", title: `ms a ${per} that it launched itself`, text: line => fixed(line.own_ms)},
    {name: "pieces", title: `kernels and copies a ${per} that it launched itself`, text: line => three(line.count)}], 24),
  make("p", {class: "faint"}, `By the module whose call launched it. ${percent(1 - inside / total)} of the device time was launched in none: the backward pass, the optimizer, the loss where it is a function.`));
}

/** A module's name without that of the module around it. */
function own(path) {
  const name = path.at(-1), above = path.at(-2);
  return above && name.startsWith(`${above}.`) ? name.slice(above.length) : name;
}

function listed(name, all, text, columns, first = FIRST) {
  const body = make("div"), wanted = make("input", {type: "search", placeholder: "filter", "aria-label": `Filter ${name.toLowerCase()}`, oninput: () => draw()});
  let whole = false;
  function draw() {
    const words = wanted.value.toLowerCase().split(/\s+/).filter(Boolean), found = all.filter(line => words.every(word => text(line).toLowerCase().includes(word)));
    const shown = whole ? found : found.slice(0, first), rest = found.slice(shown.length);
    body.replaceChildren(table(columns, shown, name), rest.length ? make("button", {type: "button", class: "link", onclick: () => { whole = true; draw(); }}, `${count(rest.length)} more, ${time(1e6 * rest.reduce((sum, line) => sum + (line.own_ms ?? line.ms), 0))} together`) : "");
  }
  draw();
  return make("div", {}, make("div", {class: "tools"}, make("h3", {}, name), wanted), body);
}
