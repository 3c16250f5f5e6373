import {time} from "./dom.js";

const SOON = 5_000;  // ns: what begins so soon after the work before it had waited for it
const CHAIN = 6;

/** What held an event up, and what held that up: `[sentence, event]` each, as far as the recording tells. */
export function heldUp(events, i) {
  const chain = [], seen = new Set();
  let at = i;
  while (at >= 0 && chain.length < CHAIN && !seen.has(at)) {
    seen.add(at);
    const next = events.kind[at] === events.WAIT ? waited(events, at) : events.isDevice(at) ? began(events, at) : events.kindOf(at) === "call" ? called(events, at) : null;
    if (!next) break;
    chain.push(next);
    at = next[1];
  }
  return chain;
}

function waited(events, i) {
  const work = events.link[i];
  return work < 0 ? null : [`It waited for ${quoted(events, work)}, which ended ${time(Math.abs(events.over(i) - events.over(work)))} ${events.over(work) <= events.over(i) ? "before it returned" : "after it by the device's clock"}.`, work];
}

function began(events, i) {
  const before = events.lastWork(events.start[i] + 1, events.row(i).lane), call = events.link[i];
  const gap = before >= 0 ? events.start[i] - events.over(before) : Infinity;
  if (before >= 0 && before !== i && (gap < SOON || (call >= 0 && events.over(before) > events.over(call)))) {
    if (gap < SOON) return [`Its queue was busy: it began ${time(Math.max(0, gap))} after ${quoted(events, before)}${call >= 0 ? `, launched ${time(events.start[i] - events.start[call])} before it began` : ""}.`, before];
    const other = events.lastWork(events.start[i] + 1);
    if (other >= 0 && other !== before && other !== i && events.start[i] - events.over(other) < SOON) return [`It waited for another queue: ${quoted(events, other)} had just ended.`, other];
  }
  if (call < 0) return null;
  return [`Nothing ran before it in its queue: it began ${time(events.start[i] - events.start[call])} after its launch, ${quoted(events, call)}${isFinite(gap) ? `, and the queue had been empty for ${time(gap)}` : ""}.`, call];
}

function called(events, i) {
  let wait = -1;
  for (const one of events.waits) { if (events.over(one) > events.start[i] + 1) break; wait = one; }
  if (wait < 0) return null;
  return [`The host came to it ${time(events.start[i] - events.over(wait))} after it had waited ${time(events.duration[wait])} in ${quoted(events, wait)}.`, wait];
}

export const quoted = (events, i) => { const name = events.nameOf(i); return name.length > 60 ? `${name.slice(0, 57)}…` : name; };
