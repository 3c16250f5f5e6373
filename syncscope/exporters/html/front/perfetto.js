const SITE = "https://ui.perfetto.dev";

/** Hand what is seen to Perfetto's page, as its own documentation says it: ask until it answers, then post the trace. */
export function openInPerfetto(view, title, told) {
  const page = window.open(SITE);
  if (!page) { told.textContent = "The browser did not open ui.perfetto.dev: allow it, or open the .json.gz there."; return; }
  const ask = setInterval(() => page.postMessage("PING", SITE), 200), stop = setTimeout(() => { clearInterval(ask); told.textContent = "ui.perfetto.dev did not answer: is there a network?"; }, 20_000);
  const answer = event => {
    if (event.source !== page || event.data !== "PONG") return;
    clearInterval(ask);
    clearTimeout(stop);
    removeEventListener("message", answer);
    page.postMessage({perfetto: {buffer: new TextEncoder().encode(traceEvents(view)).buffer, title}}, SITE);
  };
  addEventListener("message", answer);
}

/** The events between the two sides of the view in the Trace Event Format. */
export function traceEvents({events, from, to}) {
  const found = events.lanes.flatMap((lane, number) => [{ph: "M", name: "thread_name", pid: lane.device + 1, tid: number, args: {name: lane.label}}]);
  for (const device of new Set(events.lanes.map(lane => lane.device))) found.push({ph: "M", name: "process_name", pid: device + 1, tid: 0, args: {name: device < 0 ? "host" : `device ${device}`}});
  for (const row of events.rows) for (let i = events.after(row, from); i < row.last && events.start[i] < to; i++) {
    const place = {pid: events.lanes[row.lane].device + 1, tid: row.lane, ts: events.start[i] / 1e3};
    found.push({ph: "X", name: events.nameOf(i), cat: events.kindOf(i), dur: events.duration[i] / 1e3, ...place});
    const link = events.link[i];
    if (link >= 0 && events.kind[i] !== events.WAIT) {
      found.push({ph: "s", id: i, cat: "launch", name: "launch", pid: 0, tid: events.row(link).lane, ts: events.start[link] / 1e3}, {ph: "f", bp: "e", id: i, cat: "launch", name: "launch", ...place});
    }
  }
  return JSON.stringify({traceEvents: found, displayTimeUnit: "ms"});
}
