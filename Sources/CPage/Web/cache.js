// The caches, with a bar for each tier and the variants that were stored last. They are updated while they are shown.
import { Failure, ask } from "./answer.js";
import { byID, bytesText, h } from "./dom.js";

const TOKEN = "image-pipeline-admin-token";
const PERIOD = 2000;

/** Returns header fields with the admin token if there is one. */
export function authorization() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

export class CacheView {
  /**
   * @param open called with the recipe and source of a variant in order to show it
   * @param folders the names of the folders, with which sources begin
   */
  constructor(open, folders) {
    Object.assign(this, { open, folders });
    this.bars = new Map();
    this.cards = new Map();
    byID("token-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const token = byID("token").value.trim();
      if (token) sessionStorage.setItem(TOKEN, token); else sessionStorage.removeItem(TOKEN);
      byID("token").value = "";
      this.tellToken();
      this.refresh();
    });
    byID("forget-token").addEventListener("click", () => {
      sessionStorage.removeItem(TOKEN);
      this.tellToken();
      byID("token").focus();
    });
    document.addEventListener("visibilitychange", () => this.schedule());
    this.tellToken();
  }

  tellToken() {
    const isKnown = sessionStorage.getItem(TOKEN) !== null;
    byID("token-state").textContent = isKnown ? "A token is set until this tab is closed." : "No token is set.";
    byID("forget-token").hidden = !isKnown;
    // Without a token, the server rejects purges.
    byID("recent").classList.toggle("closed", !isKnown);
  }

  /** Starts or stops updating the caches. */
  set isShown(value) {
    this.isVisible = value;
    if (value) this.refresh(); else clearTimeout(this.timer);
  }

  schedule() {
    clearTimeout(this.timer);
    if (this.isVisible && !document.hidden) this.timer = setTimeout(() => this.refresh(), PERIOD);
  }

  async refresh() {
    clearTimeout(this.timer);
    try {
      const response = await ask("page/cache.json", { headers: authorization(), cache: "no-store" });
      const state = await response.json();
      this.showTiers(state);
      this.showRecent(state);
      byID("cache-error").hidden = true;
    } catch (error) {
      this.tell(error);
    }
    this.schedule();
  }

  tell(error) {
    const place = byID("cache-error");
    place.hidden = false;
    place.replaceChildren(
      h("strong", {}, error instanceof Failure ? error.title : "The caches cannot be shown"),
      h("p", {}, error instanceof Failure ? error.detail ?? "" : String(error)));
  }

  showTiers(state) {
    for (const tier of state.tiers) {
      const name = `${tier.tier} ${tier.kind}`;
      let bar = this.bars.get(name);
      if (!bar) {
        bar = this.makeBar(name);
        this.bars.set(name, bar);
        byID("tiers").append(bar.element);
      }
      const asked = tier.hits + tier.misses;
      const ratio = asked === 0 ? "–" : `${Math.round((tier.hits / asked) * 100)} %`;
      // The contents of a bucket are not counted, and a bucket has no budget.
      bar.meter.hidden = tier.budget === undefined;
      if (!bar.meter.hidden) {
        const share = tier.budget > 0 ? tier.bytes / tier.budget : 0;
        bar.fill.style.width = `${Math.min(100, share * 100)}%`;
        bar.meter.setAttribute("aria-valuenow", String(Math.round(share * 100)));
        bar.meter.setAttribute("aria-valuetext", `${bytesText(tier.bytes)} of ${bytesText(tier.budget)}`);
        bar.size.textContent = `${bytesText(tier.bytes)} of ${bytesText(tier.budget)}`;
      }
      const facts = bar.meter.hidden
        ? { hits: tier.hits, misses: tier.misses, "hit ratio": ratio }
        : { entries: tier.entries, hits: tier.hits, misses: tier.misses, evictions: tier.evictions, "hit ratio": ratio };
      bar.facts.replaceChildren(...Object.entries(facts).map(([key, value]) =>
        h("div", {}, h("dt", {}, key), h("dd", {}, typeof value === "number" ? value.toLocaleString("en") : value))));
    }
  }

  makeBar(name) {
    const fill = h("div", { class: "fill" });
    const meter = h("div", {
      class: "meter", role: "meter", "aria-label": name, "aria-valuemin": "0", "aria-valuemax": "100",
    }, fill);
    const size = h("span", { class: "soft number" });
    const facts = h("dl", { class: "counts" });
    const element = h("section", { class: "card tier" },
      h("header", {}, h("h3", {}, name), size), meter, facts);
    return { element, fill, meter, size, facts };
  }

  showRecent(state) {
    byID("recent-empty").hidden = state.recent.length > 0;
    const gallery = byID("recent");
    const kept = new Map();
    for (const variant of state.recent) {
      // A second pass replaces a variant under its key.
      const version = `${variant.key} ${variant.bytes}`;
      kept.set(version, this.cards.get(version) ?? this.makeCard(variant));
    }
    for (const [key, card] of this.cards) {
      if (kept.has(key)) continue;
      card.element.remove();
      if (card.url) URL.revokeObjectURL(card.url);
    }
    // Move only elements whose position has changed, so that the keyboard focus does not change.
    [...kept.values()].forEach(({ element }, at) => {
      if (gallery.children[at] !== element) gallery.insertBefore(element, gallery.children[at] ?? null);
    });
    this.cards = kept;
  }

  makeCard(variant) {
    const image = h("img", { alt: `${variant.recipe} of ${variant.source ?? "a purged source"}` });
    const note = h("p", { class: "note", role: "status" });
    const source = variant.source;
    const canOpen = source && (/^https?:/.test(source) || ["sample", ...this.folders].includes(source.split(":")[0]));
    const card = {
      element: h("figure", { class: "card variant", "data-key": variant.key },
        h("div", { class: "frame checkered" }, image),
        h("figcaption", {},
          h("code", {}, variant.recipe),
          h("p", { class: "soft clip", title: source ?? "" }, source ?? "source no longer stored"),
          h("p", { class: "soft number" },
            `${variant.width} × ${variant.height} · ${bytesText(variant.bytes)}${variant.firstBytes > variant.bytes ? ` (first ${bytesText(variant.firstBytes)})` : ""} · ${variant.type.replace("image/", "").replace("+xml", "")}`),
          h("div", { class: "row" },
            canOpen && h("button", { type: "button", onclick: () => this.open(variant.recipe, source) }, "Open"),
            source && !source.startsWith("sample:") && h("button", {
              type: "button", class: "danger", title: "Remove the original and all its variants",
              onclick: (event) => this.purge(source, event.target, note),
            }, "Purge source")),
          note)),
    };
    this.load(variant, image, card);
    return card;
  }

  async load(variant, image, card) {
    try {
      const response = await ask(`page/variants/${variant.key}/${variant.original}`, { headers: authorization() });
      card.url = URL.createObjectURL(await response.blob());
      image.src = card.url;
    } catch {
      image.alt = "This variant is no longer stored, or cannot be read.";
    }
  }

  async purge(source, button, note) {
    if (button.dataset.sure === undefined) {
      button.dataset.sure = "";
      button.textContent = "Purge original and variants?";
      return;
    }
    delete button.dataset.sure;
    button.textContent = "Purge source";
    try {
      await ask(`source/${encodeURIComponent(source)}`, { method: "DELETE", headers: authorization() });
      note.textContent = "Purged.";
      this.refresh();
    } catch (error) {
      note.textContent = [error.title, error.detail].filter(Boolean).join(": ");
    }
  }
}
