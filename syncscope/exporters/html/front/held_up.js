import {count, short, time} from "./dom.js";

const CHAIN = 8, MOST = 100_000;

/** What held an event up, and what held that up, as the analysis found it: `[sentence, event]` each. */
export function heldUp(events, i) {
  const chain = [], seen = new Set();
  let at = i;
  while (at >= 0 && chain.length < CHAIN && !seen.has(at)) {
    seen.add(at);
    const next = told(events, at);
    if (!next) break;
    chain.push(next);
    at = next[1];
  }
  return chain;
}

function told(events, i) {
  const why = events.whyOf(i), by = events.holder(i);
  if (why === "before") return ["It waited for what was enqueued before the recording.", -1];
  if (why === "nothing") return ["It began late, and nothing that was recorded says why.", -1];
  if (by < 0) return null;
  const since = time(Math.max(0, events.start[i] - events.over(by)));
  switch (why) {
    case "return": return [`It waited for ${quoted(events, by)}, which ended ${time(Math.abs(events.over(i) - events.over(by)))} ${events.over(by) <= events.over(i) ? "before it returned" : "after it by the device's clock"}.`, by];
    case "launch": return [`The device was ready for it: it began ${time(events.start[i] - events.start[by])} after the host came to its launch, ${quoted(events, by)}.`, by];
    case "host": return [`The host came to it ${since} after it had waited ${time(events.duration[by])} in ${quoted(events, by)}.`, by];
    case "queue": return busy(events, i, by);
    case "told": return [`It waited for another queue, as the driver says: ${quoted(events, by)} ended ${since} before it.`, by];
    case "inferred": return [`It waited for another queue, by the moment: ${quoted(events, by)} ended ${since} before it.`, by];
    case "full": return [`Work of other queues had the device to itself: the last of it was ${quoted(events, by)}.`, by];
  }
  return null;
}

/** The work before it in its queue, back to the first that the queue did not hold up. */
function busy(events, i, by) {
  let first = by, number = 1;
  for (; number < MOST && events.whyOf(first) === "queue" && events.holder(first) >= 0; number++) first = events.holder(first);
  return [`Its queue was busy: ${number === 1 ? "one piece" : `${count(number)} pieces`} of work ran one after the other before it, the first ${quoted(events, first)}; that began ${time(events.start[i] - events.start[first])} before it.`, first];
}

export const quoted = (events, i) => { const name = events.kindOf(i) === "kernel" ? short(events.nameOf(i)) : events.nameOf(i); return name.length > 60 ? `${name.slice(0, 57)}…` : name; };
