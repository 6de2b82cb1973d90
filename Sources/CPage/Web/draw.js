// A crop and a focus point that the user draws on the original.
import { byID } from "./dom.js";
import { clamped, follows } from "./view.js";

export class Drawing {
  /**
   * @param begin called before the user draws, in order to show the original
   * @param done called with the tool and the area
   */
  constructor(view, begin, done) {
    Object.assign(this, { pane: view.panes[0], done, tool: null, marks: {} });
    this.buttons = { crop: byID("draw-crop"), focus: byID("draw-focus") };
    for (const [tool, button] of Object.entries(this.buttons)) {
      button.addEventListener("click", (event) => {
        begin();
        // The keyboard was used, so place the mark in the middle. The fields of the form can then move it.
        if (event.detail === 0) this.done(tool, area({ x: 0.25, y: 0.25 }, { x: 0.75, y: 0.75 }));
        else this.use(this.tool === tool ? null : tool);
      });
    }
    view.placed = () => this.place();
    view.stage.addEventListener("keydown", (event) => event.key === "Escape" && this.use(null));
    this.pane.figure.addEventListener("pointerdown", (event) => this.grab(event));
  }

  use(tool) {
    this.tool = tool;
    for (const [name, button] of Object.entries(this.buttons)) button.setAttribute("aria-pressed", String(name === tool));
    this.pane.figure.classList.toggle("drawing", tool !== null);
  }

  /** Shows the marks `{ crop, focus }`. Positions are fractions of the original's edges. */
  mark(marks) {
    this.marks = marks;
    this.place();
  }

  place() {
    const { left, top, width, height } = this.pane.image.style;
    for (const name of ["crop", "focus"]) {
      const mark = this.marks[name];
      const { style } = byID(`drawn-${name}`);
      byID(`drawn-${name}`).hidden = !mark || !this.pane.size;
      if (!mark) continue;
      style.left = `calc(${left} + ${mark.x} * ${width})`;
      style.top = `calc(${top} + ${mark.y} * ${height})`;
      if (name === "crop") [style.width, style.height] = [`calc(${mark.width} * ${width})`, `calc(${mark.height} * ${height})`];
    }
  }

  grab(event) {
    const { tool } = this;
    if (tool === null || event.button !== 0) return;
    const box = this.pane.image.getBoundingClientRect();
    const share = ({ clientX, clientY }) => ({
      x: clamped(0, 1, (clientX - box.left) / box.width), y: clamped(0, 1, (clientY - box.top) / box.height),
    });
    const begin = share(event);
    follows(this.pane.figure, event, (moved) => {
      if (tool === "crop") this.mark({ ...this.marks, crop: area(begin, share(moved)) });
    }, (last) => {
      this.use(null);
      if (last.type === "pointerup") this.done(tool, area(tool === "crop" ? begin : share(last), share(last)));
    });
  }
}

const area = (one, other) => ({
  x: Math.min(one.x, other.x), y: Math.min(one.y, other.y),
  width: Math.abs(one.x - other.x), height: Math.abs(one.y - other.y),
});
