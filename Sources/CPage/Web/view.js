// The stage, which shows two pictures and zooms and pans both of them together.
//
// The zoom is the number of device pixels per picture pixel. At 1, each pixel that was sent is one pixel of the screen,
// whatever the screen's density. "Fit" shows complete pictures and never enlarges them. Edges are at whole device
// pixels, because pixels would otherwise be mixed.
import { byID, tabList } from "./dom.js";

const ZOOMS = [0, 1, 2, 4, 8];
/** The space around a picture that fits, in CSS pixels. */
const MARGIN = 12;
const AXES = [["x", "left", "width"], ["y", "top", "height"]];

export class View {
  constructor() {
    this.stage = byID("stage");
    this.handle = byID("divider");
    this.panes = ["against", "variant"].map((name) => ({
      figure: this.stage.querySelector(`.${name}`), image: byID(`${name}-image`), size: null,
    }));
    /** Called after the pictures have moved. */
    this.placed = () => {};
    /** The point in the middle of the window, in fractions of the picture's edges. */
    this.centre = { x: 0.5, y: 0.5 };
    this.zoom = 0;
    this.layouts = tabList(byID("layouts"), [["divided", "Divider"], ["beside", "Side by side"], ["alone", "Variant"]],
      (layout) => {
        this.layout = layout;
        this.place();
      });
    this.zooms = tabList(byID("zooms"), ZOOMS.map((zoom) => [zoom, zoom ? `${zoom}:1` : "Fit"]), (zoom) => {
      this.zoom = zoom;
      this.place();
    });
    this.handle.addEventListener("keydown", (event) => this.dividerKey(event));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    this.stage.addEventListener("pointerdown", (event) => this.grab(event));
    new ResizeObserver(() => this.place()).observe(this.stage);
    this.divide(50);
  }

  /** Shows a picture, `{ url, size }` or null, in pane 0 (for comparison) or 1 (the variant). */
  show(at, picture, caption) {
    const pane = this.panes[at];
    pane.size = picture?.size ?? null;
    pane.image.hidden = !pane.size;
    pane.image.alt = caption;
    if (pane.size && pane.image.src !== picture.url) pane.image.src = picture.url;
    pane.figure.querySelector("figcaption").textContent = caption;
    this.place();
  }

  /** The layout. Pictures with different aspect ratios are shown side by side, because they cannot be superimposed. */
  get shownLayout() {
    const [{ size: one }, { size: other }] = this.panes;
    const isAligned = !one || !other || Math.abs((one.width / other.width) * other.height - one.height) <= 1;
    return this.layout === "divided" && !isAligned ? "beside" : this.layout;
  }

  place() {
    const layout = this.shownLayout;
    this.stage.dataset.layout = layout;
    const ratio = window.devicePixelRatio;
    for (const pane of this.panes) {
      const box = pane.figure.getBoundingClientRect();
      const size = (layout === "divided" && this.panes[1].size) || pane.size;
      if (!size || box.width === 0) continue;
      const scale = this.zoom || Math.min(1, ...AXES.map(([, , length]) => ((box[length] - 2 * MARGIN) * ratio) / size[length]));
      for (const [axis, start, length] of AXES) {
        const shown = Math.max(1, Math.round(size[length] * scale));
        const room = box[length] * ratio - shown;
        const offset = room >= 0 ? room / 2 : clamped(room, 0, (box[length] * ratio) / 2 - this.centre[axis] * shown);
        pane.image.style[length] = `${shown / ratio}px`;
        pane.image.style[start] = `${Math.round(box[start] * ratio + offset) / ratio - box[start]}px`;
        // The centers at which no space is visible next to the picture.
        const half = Math.min(0.5, (box[length] * ratio) / 2 / shown);
        pane[axis] = { shown: shown / ratio, least: half, most: 1 - half };
      }
      pane.image.style.imageRendering = scale >= 1 ? "pixelated" : "auto";
    }
    this.stage.classList.toggle("larger", this.isLarger);
    this.placed();
  }

  /** Whether a picture is larger than the window, so that panning is possible. */
  get isLarger() {
    return this.panes.some((pane) => pane.size && [pane.x, pane.y].some((axis) => axis && axis.most > axis.least));
  }

  /** Moves the window over the pictures by a number of CSS pixels. */
  pan(right, down) {
    for (const [axis, by] of [["x", right], ["y", down]]) {
      const { shown, least, most } = this.panes[1][axis] ?? {};
      if (shown) this.centre[axis] = clamped(least, most, clamped(least, most, this.centre[axis]) + by / shown);
    }
    this.place();
  }

  key(event) {
    if (event.target !== this.stage || event.ctrlKey || event.metaKey || event.altKey) return;
    const [right, down] = { ArrowLeft: [-40, 0], ArrowRight: [40, 0], ArrowUp: [0, -40], ArrowDown: [0, 40] }[event.key] ?? [];
    const by = { "+": 1, "=": 1, "-": -1 }[event.key];
    if (right !== undefined && this.isLarger) this.pan(right, down);
    else if (by) this.zooms.select(ZOOMS[clamped(0, ZOOMS.length - 1, ZOOMS.indexOf(this.zoom) + by)]);
    else return;
    event.preventDefault();
  }

  /** Drags the divider if the pointer is on its handle or the pictures fit. Otherwise, drags the pictures. */
  grab(event) {
    if (event.button !== 0 || event.defaultPrevented) return;
    const movesDivider = this.stage.dataset.layout === "divided" && (event.target === this.handle || !this.isLarger);
    let last = event;
    const follow = (moved) => {
      const box = this.stage.getBoundingClientRect();
      if (movesDivider) this.divide(((moved.clientX - box.left) / box.width) * 100);
      else this.pan(last.clientX - moved.clientX, last.clientY - moved.clientY);
      last = moved;
    };
    follows(this.stage, event, follow);
    if (movesDivider) follow(event);
    (movesDivider ? this.handle : this.stage).focus({ preventScroll: true });
  }

  divide(position) {
    this.position = clamped(0, 100, position);
    this.stage.style.setProperty("--divider", `${this.position}%`);
    this.handle.setAttribute("aria-valuenow", String(Math.round(this.position)));
  }

  dividerKey(event) {
    const step = event.shiftKey ? 10 : 2;
    const target = {
      ArrowLeft: this.position - step, ArrowDown: this.position - step, ArrowRight: this.position + step,
      ArrowUp: this.position + step, PageDown: this.position - 10, PageUp: this.position + 10, Home: 0, End: 100,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.divide(target);
  }
}

export const clamped = (least, most, value) => Math.min(most, Math.max(least, value));

/** Calls `follow` for each move of a pressed pointer, and `end` when the pointer is released. */
export function follows(element, event, follow, end = () => {}) {
  const stop = new AbortController();
  element.setPointerCapture(event.pointerId);
  element.addEventListener("pointermove", follow, stop);
  for (const name of ["pointerup", "pointercancel"]) {
    element.addEventListener(name, (last) => {
      stop.abort();
      end(last);
    }, stop);
  }
  event.preventDefault();
}
