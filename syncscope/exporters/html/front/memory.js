import {count, make, msTime, percent, section, size, table, ticks, time, under} from "./dom.js";

const HEIGHT = 150, TOP = 16, BOTTOM = 20, RIGHT = 12;

/** What was in use of each device's memory, over the timeline's time, and whose it was when it was the most. */
export function memory(model, look) {
  if (!model.memory?.length) return null;
  const box = section("memory", "Memory", "in use over the time that the timeline shows; the dashed line is the most there was");
  model.memory.forEach((held, n) => box.append(...device(model, held, model.page.memory[n], look, model.memory.length > 1)));
  return box;
}

function device(model, held, more, look, several) {
  const share = one => one.bytes / held.peak_bytes, exact = held.before_bytes !== null;
  const go = make("button", {type: "button", class: "link", onclick: () => look?.goToTime(1e6 * held.peak_at_ms - model.timeline.origin)}, held.peak_step === null ? `at ${msTime(held.peak_at_ms)}` : `in step ${held.peak_step}`);
  const said = make("p", {class: "follows"}, several ? `Device ${held.device}: ` : "", exact ? "" : "at least ", make("b", {}, size(held.peak_bytes)), " at the most, ", look ? go : go.textContent, held.made_by.bytes ? [", reached by ", name(held.made_by), `, which asked for ${size(held.made_by.bytes)}`] : ", when the recording began",
    held.reserved_bytes > 0 ? `. The allocator had taken ${size(held.reserved_bytes)} from the driver` : "", exact ? "." : ". What was in use before the recording is not known: all is above that.");
  const plot = make("div", {class: "chart memory"});
  const draw = (from = 0, to = model.timeline?.end ?? more.time.at(-1)) => plot.replaceChildren(picture(held, more, model.timeline?.origin ?? 0, from, to, plot.clientWidth || 800));
  if (look) look.onView(draw);
  let seen = [];
  if (look) look.onView((from, to) => { seen = [from, to]; });
  new ResizeObserver(() => draw(...seen)).observe(plot);
  const columns = [
    {name: "line", left: true, text: one => [name(one), under(more.code, one.name) ? make("code", {class: "code"}, more.code[one.name]) : ""]},
    {name: "bytes", title: "in use at the high-water mark that was allocated there", text: one => size(one.bytes)},
    {name: "of it", title: "part of the high-water mark", text: one => [make("span", {class: "part-bar", "aria-hidden": "true"}, make("i", {style: {width: `${100 * share(one)}%`}})), percent(share(one))]},
    {name: "allocations", title: "that were alive then", text: one => one.allocations ? count(one.allocations) : ""}];
  return [said, plot, held.held.length ? [make("h3", {class: "spaced"}, "In use at the high-water mark"), listed(columns, held.held)] : make("p", {class: "faint"}, "The recording does not say which of it was freed.")].flat();
}

function listed(columns, all, first = 12) {
  const body = make("div", {class: "holders"}, table(columns, all.slice(0, first), "In use at the high-water mark"));
  if (all.length > first) body.append(make("button", {type: "button", class: "link", onclick: () => body.replaceChildren(table(columns, all, "In use at the high-water mark"))}, `${count(all.length - first)} more, ${size(all.slice(first).reduce((sum, one) => sum + one.bytes, 0))} together`));
  return body;
}

const name = one => make("span", {class: "holder", title: one.name}, one.path ? one.name.replace(/[^\s(]*[\\/]/, "") : one.name);

/** The curve as an area between two times, under the timeline's own axis. */
function picture(held, {time: times, bytes}, origin, from, to, width) {
  const left = width < 600 ? 64 : 150, most = held.peak_bytes || 1;
  const x = t => left + (width - left - RIGHT) * (t - from) / (to - from || 1), y = value => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
  const svg = make("svg:svg", {viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `Memory in use, at the most ${size(held.peak_bytes)}; the table below says whose it was`});
  for (const tick of ticks(most, 3)) svg.append(make("svg:line", {x1: left, x2: width - RIGHT, y1: y(tick), y2: y(tick), class: "grid"}), make("svg:text", {x: left - 8, y: y(tick) + 4, class: "axis end"}, size(tick)));
  const inside = number => Math.max(left, Math.min(width - RIGHT, x(times[number] - origin)));
  let first = times.findIndex(t => t - origin > from);
  first = Math.max(0, (first < 0 ? times.length : first) - 1);
  const edge = [`M${inside(first)} ${y(0)}V${y(bytes[first])}`];
  let at = first;
  for (; at + 1 < times.length && times[at + 1] - origin <= to; at++) edge.push(`H${inside(at + 1).toFixed(1)}V${y(bytes[at + 1]).toFixed(1)}`);
  edge.push(at + 1 < times.length ? `H${width - RIGHT}V${y(0)}Z` : `V${y(0)}Z`);
  svg.append(make("svg:path", {d: edge.join(""), class: "held"}), make("svg:line", {x1: left, x2: width - RIGHT, y1: y(held.peak_bytes), y2: y(held.peak_bytes), class: "mark"}));
  const peak = x(1e6 * held.peak_at_ms - origin);
  if (peak >= left - 1 && peak <= width - RIGHT + 1) svg.append(make("svg:circle", {cx: peak, cy: y(held.peak_bytes), r: 5, class: "point"}, make("svg:title", {}, `${size(held.peak_bytes)}, ${held.made_by.name}`)));
  for (const [t, anchor] of [[from, ""], [to, "end"]]) svg.append(make("svg:text", {x: anchor ? width - RIGHT : left, y: HEIGHT - 5, class: `axis ${anchor}`}, time(t)));
  return svg;
}
