import {count, short, time} from "./dom.js";

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
    if (gap < SOON) return busy(events, i, before, call);
    const other = events.lastWork(events.start[i] + 1);
    if (other >= 0 && other !== before && other !== i && events.start[i] - events.over(other) < SOON) return [`It waited for another queue: ${quoted(events, other)} had just ended.`, other];
  }
  if (call < 0) return null;
  return [`Nothing ran before it in its queue: it began ${time(events.start[i] - events.start[call])} after its launch, ${quoted(events, call)}${isFinite(gap) ? `, and the queue had been empty for ${time(gap)}` : ""}.`, call];
}

/** The work before it in its queue, without a pause, back to where that began. */
function busy(events, i, before, call) {
  const {lane} = events.row(i);
  let first = before, number = 1;
  for (; number < 100_000; number++) {
    const next = events.lastWork(events.start[first] + 1, lane);
    if (next < 0 || next === first || events.start[first] - events.over(next) >= SOON) break;
    first = next;
  }
  const since = call >= 0 ? `, its launch ${time(events.start[i] - events.start[call])}` : "";
  return [`Its queue was busy: ${number === 1 ? "one piece" : `${count(number)} pieces`} of work ran without a pause before it, the first ${quoted(events, first)}; that began ${time(events.start[i] - events.start[first])} before it${since}.`, first];
}

function called(events, i) {
  let wait = -1;
  for (const one of events.waits) { if (events.over(one) > events.start[i] + 1) break; wait = one; }
  if (wait < 0) return null;
  return [`The host came to it ${time(events.start[i] - events.over(wait))} after it had waited ${time(events.duration[wait])} in ${quoted(events, wait)}.`, wait];
}

export const quoted = (events, i) => { const name = events.kindOf(i) === "kernel" ? short(events.nameOf(i)) : events.nameOf(i); return name.length > 60 ? `${name.slice(0, 57)}…` : name; };
