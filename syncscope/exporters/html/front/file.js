import {showPage} from "./page.js";

const text = id => document.getElementById(id).textContent;
showPage(document.getElementById("syncscope"), JSON.parse(text("model")), text("events"));
