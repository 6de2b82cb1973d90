// Original and variant on top of each other with a divider that can be dragged, or side by side.
import { byID, tabList } from "./dom.js";

export class Comparison {
  constructor() {
    this.stage = byID("stage");
    this.handle = byID("divider");
    this.position = 50;
    tabList(byID("layouts"), [["divided", "Divider"], ["beside", "Side by side"], ["alone", "Variant"]], (layout) => {
      this.stage.dataset.layout = layout;
    });
    this.handle.addEventListener("keydown", (event) => this.key(event));
    this.stage.addEventListener("pointerdown", (event) => this.grab(event));
    this.move(50);
  }

  /** Shows two pictures; null leaves the previous one. */
  show(original, variant) {
    for (const [id, url, text] of [["original-image", original, "Original"], ["variant-image", variant, "Variant"]]) {
      if (url === null) continue;
      const image = byID(id);
      if (image.dataset.blob) URL.revokeObjectURL(image.dataset.blob);
      image.dataset.blob = url.startsWith("blob:") ? url : "";
      image.alt = text;
      image.src = url;
    }
  }

  move(position) {
    this.position = Math.min(100, Math.max(0, position));
    this.stage.style.setProperty("--divider", `${this.position}%`);
    this.handle.setAttribute("aria-valuenow", String(Math.round(this.position)));
    this.handle.setAttribute("aria-valuetext", `${Math.round(this.position)} % original`);
  }

  key(event) {
    const step = event.shiftKey ? 10 : 2;
    const target = {
      ArrowLeft: this.position - step, ArrowDown: this.position - step, ArrowRight: this.position + step,
      ArrowUp: this.position + step, PageDown: this.position - 10, PageUp: this.position + 10, Home: 0, End: 100,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.move(target);
  }

  grab(event) {
    if (this.stage.dataset.layout !== "divided" || event.button !== 0) return;
    const follow = (moved) => {
      const box = this.stage.getBoundingClientRect();
      this.move(((moved.clientX - box.left) / box.width) * 100);
    };
    const end = () => {
      this.stage.removeEventListener("pointermove", follow);
      this.stage.removeEventListener("pointerup", end);
      this.stage.removeEventListener("pointercancel", end);
    };
    this.stage.setPointerCapture(event.pointerId);
    this.stage.addEventListener("pointermove", follow);
    this.stage.addEventListener("pointerup", end);
    this.stage.addEventListener("pointercancel", end);
    follow(event);
    this.handle.focus({ preventScroll: true });
    event.preventDefault();
  }
}
