import {comparison} from "./comparison.js";
import {make, prose, section, table} from "./dom.js";
import {ranks} from "./ranks.js";

/** What stands in a row each: jobs, or the ranks of two; and below it what is told of them in full. */
export function overview(model) {
  if (!model.table) return [];
  const {title, lead, columns, rows, links = []} = model.table;
  const leads = new Map(rows.map((row, number) => [row, links[number]]));
  const cell = (row, number) => number === 0 && leads.get(row) ? make("a", {href: leads.get(row)}, row[0]) : row[number];
  const heads = columns.map(({name, left}, number) => ({name, left, text: row => cell(row, number)}));
  const all = section("table", title, lead, table(heads, rows, title));
  const jobs = (model.jobs || []).map((job, number) => {
    const box = ranks(job, `job-${number}`, job.title);
    box.querySelector("h2").after(make("p", {}, prose(job.verdict)), job.notes.length ? make("ul", {}, job.notes.map(note => make("li", {}, prose(note)))) : "");
    return box;
  });
  const compared = (model.compared || []).map((one, number) => comparison(one, `compared-${number}`, one.title));
  return [all, ...jobs, ...compared];
}
