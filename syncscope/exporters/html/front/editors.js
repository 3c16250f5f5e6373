import {kept, make} from "./dom.js";

const EDITORS = {
  none: ["no links", null],
  vscode: ["VS Code", "vscode://file/{path}:{line}"],
  cursor: ["Cursor", "cursor://file/{path}:{line}"],
  pycharm: ["PyCharm", "pycharm://open?file={path}&line={line}"],
  zed: ["Zed", "zed://file/{path}:{line}"],
  sublime: ["Sublime Text", "subl://open?url=file://{path}&line={line}"],
};
const BUILT = "vscode";

const chosen = () => { const wanted = kept.get("editor"); return wanted in EDITORS ? wanted : BUILT; };

/** A link that opens a line in the user's editor; null where there is no file or no editor. */
export function editorLink(folder, path, line) {
  const [name, pattern] = EDITORS[chosen()];
  if (!pattern || !path || /^[<]/.test(path)) return null;
  const absolute = /^([/\\]|[A-Za-z]:)/.test(path) ? path : `${folder.replace(/[/\\]$/, "")}/${path}`;
  const written = encodeURI(absolute.replaceAll("\\", "/")).replace(/[?#&$]/g, encodeURIComponent);
  return make("a", {href: pattern.replace("{path}", pattern.includes("file/{") ? written.replace(/^\//, "") : written).replace("{line}", String(line)), class: "editor", title: `${absolute}:${line}`}, `Open in ${name}`);
}

/** Which editor the links open. */
export function editorChoice(changed) {
  const select = make("select", {"aria-label": "Editor that links open", onchange: () => { kept.set("editor", select.value); changed(); }},
    Object.entries(EDITORS).map(([key, [name]]) => make("option", {value: key, selected: key === chosen()}, `editor: ${name}`)));
  return select;
}
