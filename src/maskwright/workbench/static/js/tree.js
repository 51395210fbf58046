// A tree editor over indented text: the text is the truth, the tree is another way to change it.
import { el } from "./app.js";

const INDENT = 2;

/** Lines as nodes {name, children}. The server checks the text; this reads it as well as it can. */
export function parse(text) {
  const root = { name: null, children: [], depth: -1 };
  const path = [root];
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const depth = line.replace(/\t/g, " ".repeat(INDENT)).match(/^ */)[0].length;
    while (path.length > 1 && path.at(-1).depth >= depth) path.pop();
    const node = { name: line.trim(), children: [], depth };
    path.at(-1).children.push(node);
    path.push(node);
  }
  return root;
}

export function print(node, depth = 0) {
  return node.children
    .map((child) => " ".repeat(INDENT * depth) + child.name + "\n" + print(child, depth + 1))
    .join("");
}

export class TreeEditor {
  constructor(list, area, changed) {
    Object.assign(this, { list, area, changed, root: null, dragged: null });
    area.addEventListener("input", () => this.draw());
    area.addEventListener("keydown", (event) => this.indent(event));
    list.addEventListener("keydown", (event) => this.key(event));
    this.draw();
  }

  /** Tab in the text indents the lines; Escape first lets the keyboard leave. */
  indent(event) {
    if (event.key === "Escape") this.leaving = true;
    if (event.key !== "Tab" || this.leaving) {
      if (event.key !== "Escape") this.leaving = false;
      return;
    }
    event.preventDefault();
    const { selectionStart, selectionEnd, value } = this.area;
    const from = value.lastIndexOf("\n", selectionStart - 1) + 1;
    const upTo = value.indexOf("\n", selectionEnd) < 0 ? value.length : value.indexOf("\n", selectionEnd);
    const lines = value.slice(from, upTo).split("\n");
    const moved = lines.map((line) => (event.shiftKey ? line.replace(/^ {1,2}|^\t/, "") : "  " + line)).join("\n");
    this.area.setRangeText(moved, from, upTo, "select");
    this.area.dispatchEvent(new Event("input"));
  }

  commit(focus) {
    this.area.value = print(this.root).trimEnd();
    this.draw(focus);
    this.changed();
  }

  draw(focus) {
    this.root = parse(this.area.value);
    this.nodes = [];
    this.list.replaceChildren(...this.root.children.map((node) => this.item(node, this.root, 1)));
    const target = this.nodes.find((n) => n.name === focus) || this.nodes[0];
    if (target) target.item.tabIndex = 0;
    if (focus !== undefined && target) target.item.focus();
  }

  item(node, parent, level) {
    node.parent = parent;
    this.nodes.push(node);
    const label = el("span", { class: "node", draggable: "true" }, node.name);
    const branch = node.children.length > 0;
    node.item = el("li", { role: "treeitem", tabindex: "-1", "aria-level": level, class: branch ? "branch" : "leaf", ...(branch ? { "aria-expanded": "true" } : {}) }, label);
    node.item.node = node;
    if (branch) node.item.append(el("ul", { role: "group" }, ...node.children.map((c) => this.item(c, node, level + 1))));
    label.addEventListener("dragstart", (event) => {
      this.dragged = node;
      event.dataTransfer.setData("text/plain", node.name);
      event.dataTransfer.effectAllowed = "move";
    });
    label.addEventListener("dragover", (event) => {
      if (!this.dragged || this.within(node, this.dragged)) return;
      event.preventDefault();
      label.classList.add("over");
    });
    label.addEventListener("dragleave", () => label.classList.remove("over"));
    label.addEventListener("drop", (event) => {
      event.preventDefault();
      // onto a category: into it; onto a value: beside it
      const target = node.children.length || node.fresh ? node : node.parent;
      this.move(this.dragged, target);
    });
    label.addEventListener("dblclick", () => this.rename(node));
    return node.item;
  }

  within(node, ancestor) {
    for (let n = node; n; n = n.parent) if (n === ancestor) return true;
    return false;
  }

  move(node, target, at) {
    if (!node || this.within(target, node)) return;
    node.parent.children.splice(node.parent.children.indexOf(node), 1);
    target.children.splice(at ?? target.children.length, 0, node);
    this.commit(node.name);
  }

  rename(node) {
    const name = window.prompt("Name", node.name);
    if (name && name.trim()) {
      node.name = name.trim();
      this.commit(node.name);
    }
  }

  /** A category around the focused node, to drag others into. */
  branch() {
    const name = window.prompt("Name of the category");
    if (!name || !name.trim()) return;
    const focused = this.nodes.find((n) => n.item.tabIndex === 0);
    const first = focused && !focused.children.length ? focused : this.nodes.find((n) => !n.children.length);
    if (!first) return;
    const siblings = first.parent.children;
    siblings.splice(siblings.indexOf(first), 1, { name: name.trim(), children: [first] });
    this.commit(name.trim());
  }

  key(event) {
    const node = event.target.closest("li")?.node;
    if (!node) return;
    const index = this.nodes.indexOf(node);
    const siblings = node.parent.children;
    const place = siblings.indexOf(node);
    const focus = (other) => {
      if (!other) return;
      for (const n of this.nodes) n.item.tabIndex = -1;
      other.item.tabIndex = 0;
      other.item.focus();
    };
    const keys = {
      ArrowDown: () => focus(this.nodes[index + 1]),
      ArrowUp: () => focus(this.nodes[index - 1]),
      ArrowRight: () => event.altKey ? place > 0 && this.move(node, siblings[place - 1]) : focus(node.children[0]),
      ArrowLeft: () =>
        event.altKey
          ? node.parent !== this.root && this.move(node, node.parent.parent, node.parent.parent.children.indexOf(node.parent) + 1)
          : node.parent !== this.root && focus(node.parent),
      Home: () => focus(this.nodes[0]),
      End: () => focus(this.nodes.at(-1)),
      F2: () => this.rename(node),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  }

  mark(values) {
    const wrong = new Set(values);
    for (const node of this.nodes) node.item.firstChild.classList.toggle("wrong", wrong.has(node.name));
  }
}
