import {make} from "./dom.js";
import {runs} from "./runs.js";
import {showPage} from "./page.js";

/** The tab: TensorBoard calls this in a frame of its own, in which our files lie beside this one. */
export async function render() {
  document.documentElement.lang = "en";
  document.title = "Syncscope";
  document.head.append(make("meta", {name: "viewport", content: "width=device-width, initial-scale=1"}), make("link", {rel: "stylesheet", href: "./page.css"}));
  const root = make("div", {id: "syncscope"});
  document.body.append(root);
  const ask = async (what, run) => {
    const answer = await fetch(run === undefined ? `./${what}` : `./${what}?run=${encodeURIComponent(run)}`);
    if (!answer.ok) return {error: `the server answered ${answer.status}`, hint: "see its log"};
    return answer.json();
  };
  const list = await ask("runs").catch(() => ({error: "the server did not answer", hint: "is TensorBoard still running?"}));
  if (!Array.isArray(list) || !list.length) {
    root.append(make("main", {}, make("p", {class: "problem"}, list.error || "There is no recording below the logdir."), make("p", {}, list.hint || "syncscope.trace(LOGDIR) writes one, syncscope report --format tensorboard -o LOGDIR converts one.")));
    return;
  }
  const choose = make("select", {"aria-label": "Recording", onchange: () => open(choose.value)}, list.map(({run}) => make("option", {value: run}, run)));
  let asked = 0;
  async function open(run) {
    const mine = ++asked;
    choose.value = run;
    delete document.body.dataset.ready;
    root.replaceChildren(make("main", {}, make("p", {class: "picker"}, choose), make("p", {role: "status"}, `Reading ${run} …`)));
    const told = await ask("recording", run).catch(error => ({error: String(error), hint: ""}));
    if (mine !== asked) return;
    const section = runs(list, run, ask, open);
    try {
      if (told.error) throw new Error(`${told.error}. ${told.hint || ""}`);
      showPage(root, told.shown, told.events, section, choose);
    } catch (error) {
      root.replaceChildren(make("main", {}, make("p", {class: "picker"}, choose), make("p", {class: "problem"}, error.message), section));
      document.body.dataset.ready = "yes";
    }
  }
  await open(list[0].run);
}
