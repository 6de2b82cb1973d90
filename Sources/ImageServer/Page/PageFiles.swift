// Written by scripts/embed-page; edit Sources/ImageServer/Page/Web instead.
// swift-format-ignore-file

extension PageFile {
    /// Changes with any of the files.
    static let version = "eee4a9067e58"

    static let all: [PageFile] = [
PageFile(name: "answer.js", type: "text/javascript; charset=utf-8", tag: "0496b16c5ed27298", text: #"""
// Requests to the server, and what their fields say.

/** A failed request: the members of `application/problem+json`, or what little is known. */
export class Failure extends Error {
  constructor(title, detail, status, type) {
    super(detail ?? title);
    Object.assign(this, { title, detail, status, type });
  }

  static async of(response) {
    try {
      const problem = await response.json();
      return new Failure(problem.title, problem.detail, response.status, problem.type);
    } catch {
      return new Failure(`The server answered ${response.status} ${response.statusText}`.trim(), null, response.status);
    }
  }
}

/** Where the site is mounted; this file is at `page/VERSION/answer.js` below it. */
export const root = new URL("../../", import.meta.url);

/** `fetch` of a path below the mount point, that throws a `Failure` for whatever is no success. */
export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(new URL(path, root), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("The server cannot be reached", "Is it still running?");
  }
  if (!response.ok) throw await Failure.of(response);
  return response;
}

/** A picture as it came. */
export async function picture(path, options) {
  const began = performance.now();
  const response = await ask(path, options);
  const blob = await response.blob();
  return {
    blob, status: response.status, type: response.headers.get("content-type") ?? "", fields: [...response.headers],
    seconds: (performance.now() - began) / 1000, cacheStatus: response.headers.get("cache-status"),
    timings: serverTimings(response.headers.get("server-timing") ?? ""),
  };
}

/** Width and height; null if this browser does not decode the format. */
export async function dimensions(url) {
  const image = new Image();
  image.src = url;
  try {
    await image.decode();
    return { width: image.naturalWidth, height: image.naturalHeight };
  } catch {
    return null;
  }
}

/** Entries of `Server-Timing`: `[{ name, title, milliseconds }]`. */
export function serverTimings(text) {
  return [...text.matchAll(/([\w-]+)((?:\s*;\s*[\w-]+=(?:"[^"]*"|[^;,]*))*)/g)].map(([, name, rest]) => {
    const parameters = Object.fromEntries(
      [...rest.matchAll(/([\w-]+)=(?:"([^"]*)"|([^;,]*))/g)].map(([, key, quoted, plain]) => [key, quoted ?? plain]));
    return { name, title: parameters.desc ?? "", milliseconds: Number(parameters.dur ?? 0) };
  });
}

/**
 * What `Cache-Status` (RFC 9211) says, in a sentence.
 *
 * @param isSample the source is the server's own, so nothing is asked of an origin, and nothing expires
 */
export function cacheSentence(text, isSample) {
  if (!text) return "The answer has no Cache-Status.";
  const parameters = Object.fromEntries(
    text.split(";").slice(1).map((part) => part.trim().split("=")).map(([key, value]) => [key, value ?? true]));
  const fresh = parameters.ttl === undefined || isSample ? ""
    : Number(parameters.ttl) >= 0 ? `, fresh for ${parameters.ttl} s` : ", no longer fresh";
  if (parameters.hit) {
    const detail = { memory: "memory", disk: "the disk", rendered: "a stored original" }[parameters.detail];
    if (parameters.detail === "rendered" && isSample) return "Rendered of the server's own sample.";
    if (parameters.detail === "rendered") return `The original was cached, the variant was rendered${fresh}.`;
    return `Hit: answered from ${detail ?? parameters.detail ?? "the cache"}${fresh}.`;
  }
  const reasons = {
    "uri-miss": "Miss: the origin was asked", stale: "The stored original was stale, so the origin was asked",
    "vary-miss": "Miss: no stored selection fits", bypass: "The cache was bypassed",
    request: "The request asked for a new answer", method: "The method goes to the origin",
  };
  return [
    reasons[parameters.fwd] ?? "The origin was asked", parameters.collapsed && ", together with other requests",
    parameters.stored && ", the answer is stored", fresh, ".",
  ].filter(Boolean).join("");
}

const probes = {
  avif: ["image/avif",
    "AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZgAAAOptZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5waXRt"
    + "AAAAAAABAAAAImlsb2MAAAAAREAAAQABAAAAAAEOAAEAAAAAAAAAGAAAACNpaW5mAAAAAAABAAAAFWluZmUCAAAAAAEAAGF2MDEAAAAA"
    + "amlwcnAAAABLaXBjbwAAABNjb2xybmNseAACAAIABoAAAAAMYXYxQ4EADAAAAAAUaXNwZQAAAAAAAAABAAAAAQAAABBwaXhpAAAAAAMICAgA"
    + "AAAXaXBtYQAAAAAAAAABAAEEgYIDhAAAACBtZGF0EgAKCBgABggQEDQgMgofkD///8QAAK/c"],
  jxl: ["image/jxl", "/woAkAFAEwgDAKwAAXIJAIAKlVHGDV7O9Xz5ocNi2sZ1hrbatrAkUWQcm6QTOCSJgwJkMriSBA=="],
  webp: ["image/webp", "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEADMDOJaQAA3AA/uuEAAA="],
};

/** The media types that this browser decodes, as a value of `Accept`, since `fetch` sends none of its own. */
export async function acceptedTypes() {
  const found = [];
  for (const [type, base64] of Object.values(probes)) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([bytes], { type }));
    if (await dimensions(url)) found.push(type);
    URL.revokeObjectURL(url);
  }
  return [...found, "image/*", "*/*;q=0.8"].join(",");
}
"""#),
PageFile(name: "app.js", type: "text/javascript; charset=utf-8", tag: "c5f9c1b0f8dcd555", text: #"""
// The page: a source, a recipe made of the catalogue's steps, and the variant that the server makes of them.
import { Failure, acceptedTypes, ask, cacheSentence, dimensions, picture, root } from "./answer.js";
import { CacheView } from "./cache.js";
import { Comparison } from "./compare.js";
import { byID, bytesText, debounced, freshID, h, icon, marked, millisecondsText, tabList } from "./dom.js";
import { stepFields } from "./fields.js";
import { Catalogue, exampleStep, parseRecipe, stepText } from "./grammar.js";
import { segment, snippets, variantPath } from "./snippets.js";

const START = "thumbnail:600x400:fill:gravity=attention,rounded-mask:24,auto";

class Page {
  constructor(catalogue, accept) {
    this.catalogue = catalogue;
    this.accept = accept;
    this.steps = [];
    this.output = parseRecipe("auto", catalogue)[0];
    this.source = "";
    this.comparison = new Comparison();
    this.cache = new CacheView((recipe, source) => {
      location.hash = "";
      this.take(recipe, source);
    });
    this.update = debounced(250, () => this.request());
    this.buildSource();
    this.buildRecipe();
    this.tabs = tabList(byID("snippet-tabs"), [
      ["url", "URL"], ...(catalogue.unsigned ? [["html", "HTML"]] : []), ["pipectl", "pipectl"], ["swift", "Swift"],
    ], (name) => {
      this.snippet = name;
      this.showSnippet();
    });
    byID("copy").addEventListener("click", () => this.copy());
    byID("accept").addEventListener("change", () => this.request());
    byID("skip").addEventListener("click", (event) => {
      // The fragment is the page's state.
      event.preventDefault();
      byID("divider").focus();
    });
    window.addEventListener("hashchange", () => this.navigate());
    byID("unsigned-off").hidden = catalogue.unsigned;
    const state = new URLSearchParams(location.hash.replace(/^#/, ""));
    this.take(state.get("recipe") ?? START, state.get("source") ?? `sample:${catalogue.samples[0]?.name ?? ""}`);
    this.navigate();
  }

  // Views

  navigate() {
    const isCache = location.hash === "#cache";
    byID("picture-view").hidden = isCache;
    byID("cache-view").hidden = !isCache;
    for (const [id, isHere] of [["picture-link", !isCache], ["cache-link", isCache]]) {
      if (isHere) byID(id).setAttribute("aria-current", "page"); else byID(id).removeAttribute("aria-current");
    }
    if (!isCache && location.hash.includes("recipe=")) {
      const state = new URLSearchParams(location.hash.slice(1));
      if (state.get("recipe") !== this.recipe || state.get("source") !== this.source) {
        this.take(state.get("recipe") ?? "", state.get("source") ?? this.source);
      }
    }
    this.cache.isShown = isCache;
  }

  remember() {
    if (location.hash === "#cache") return;
    const state = new URLSearchParams({ source: this.source, recipe: this.recipe });
    history.replaceState(null, "", `#${state}`);
    byID("picture-link").href = `#${state}`;
  }

  // Source

  buildSource() {
    const group = byID("samples");
    for (const sample of this.catalogue.samples) {
      const id = freshID();
      group.append(
        h("input", {
          type: "radio", name: "sample", id, value: `sample:${sample.name}`, class: "hidden-radio",
          onchange: (event) => this.choose(event.target.value),
        }),
        h("label", { for: id, class: "sample" },
          h("img", { src: new URL(sample.path, root).href, alt: "", loading: "lazy" }), h("span", {}, sample.title)));
    }
    byID("source-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const url = byID("source").value.trim();
      if (url) this.choose(url);
    });
  }

  choose(source) {
    this.source = source;
    byID("source").value = source.startsWith("sample:") ? "" : source;
    for (const input of document.querySelectorAll("input[name=sample]")) input.checked = input.value === source;
    this.request();
  }

  get sample() {
    return this.catalogue.samples.find((sample) => `sample:${sample.name}` === this.source);
  }

  // Recipe

  buildRecipe() {
    const add = byID("add-step");
    const groups = [
      ["Presets", "preset"], ["Steps", "operation"], ["Before the steps", "ratio"], ["Loading", "load"],
    ];
    for (const [title, role] of groups) {
      const entries = this.catalogue.ofRole(role);
      if (entries.length === 0) continue;
      add.append(h("optgroup", { label: title },
        entries.map((entry) => h("option", { value: entry.name, title: entry.summary }, entry.name))));
    }
    add.addEventListener("change", () => {
      if (add.value) this.add(add.value);
      add.value = "";
    });
    byID("recipe").addEventListener("input", (event) => {
      this.read(event.target.value);
      this.render();
      this.changed({ keepsText: true });
    });
  }

  take(recipe, source) {
    this.read(recipe);
    this.render();
    byID("recipe").value = this.recipe;
    this.choose(source);
  }

  read(recipe) {
    const steps = parseRecipe(recipe, this.catalogue);
    const isOutput = (step) => step && this.catalogue.entry(step.name)?.role === "output";
    this.output = isOutput(steps.at(-1)) ? steps.pop() : null;
    this.steps = steps;
  }

  get recipe() {
    return [...this.steps.filter((step) => !step.isOff), this.output].filter(Boolean).map(stepText).filter(Boolean)
      .join(",");
  }

  add(name) {
    const entry = this.catalogue.entry(name);
    const step = exampleStep(entry, this.catalogue);
    // The grammar has what is about loading first, then the ratio that all sizes are multiplied by.
    const rank = (own) => ["load", "ratio"].indexOf(this.catalogue.entry(own.name)?.role);
    const before = { load: [0], ratio: [0, 1] }[entry.role];
    const at = before ? this.steps.findLastIndex((own) => before.includes(rank(own))) + 1 : this.steps.length;
    this.steps.splice(at, 0, step);
    this.render(at);
    this.changed();
  }

  /** Makes the cards of all steps again. */
  render(focused) {
    byID("steps").replaceChildren(...this.steps.map((step, at) => this.card(step, at)));
    byID("steps-empty").hidden = this.steps.length > 0;
    this.renderOutput();
    if (focused !== undefined) byID("steps").children[focused]?.querySelector("input, select, button")?.focus();
  }

  card(step, at) {
    const entry = this.catalogue.entry(step.name);
    const move = (by) => {
      const to = at + by;
      [this.steps[at], this.steps[to]] = [this.steps[to], this.steps[at]];
      this.render();
      byID("steps").children[to].querySelector(by < 0 ? ".up" : ".down")?.focus();
      this.changed();
    };
    const remove = () => {
      this.steps.splice(at, 1);
      this.render();
      (byID("steps").children[Math.min(at, this.steps.length - 1)]?.querySelector(".remove") ?? byID("add-step")).focus();
      this.changed();
    };
    const id = freshID();
    const button = (name, title, action, isOff) => h("button", {
      type: "button", class: `quiet ${name}`, "aria-label": `${title} ${step.name}`, title, disabled: isOff,
      onclick: action,
    }, icon(name));
    return h("li", { class: `card step${step.isOff ? " off" : ""}`, "data-step": step.name },
      h("header", {},
        h("input", {
          type: "checkbox", id, checked: !step.isOff, title: "Use this step", "aria-label": `use ${step.name}`,
          onchange: (event) => {
            step.isOff = !event.target.checked;
            event.target.closest("li").classList.toggle("off", step.isOff);
            this.changed();
          },
        }),
        h("h3", {}, step.name),
        button("up", "Move up", () => move(-1), at === 0),
        button("down", "Move down", () => move(1), at === this.steps.length - 1),
        button("remove", "Remove", remove)),
      h("p", { class: "soft summary", title: entry?.ranges ?? "" }, marked(entry?.summary ?? "Not in this server's catalogue.")),
      h("div", { class: "fields" }, stepFields(step, () => this.changed())));
  }

  renderOutput() {
    const outputs = this.catalogue.ofRole("output");
    const id = freshID();
    const choice = h("select", {
      id, class: "format",
      onchange: (event) => {
        const name = event.target.value;
        this.output = name ? parseRecipe(name, this.catalogue)[0] : null;
        this.renderOutput();
        this.changed();
        byID("output").querySelector("select").focus();
      },
    },
    h("option", { value: "" }, "none (auto)"),
    outputs.map((entry) => h("option", { value: entry.name, selected: this.output?.name === entry.name }, entry.name)));
    const entry = this.output && this.catalogue.entry(this.output.name);
    byID("output").replaceChildren(
      h("div", { class: "field" }, h("label", { for: id }, "format"), choice),
      entry ? h("p", { class: "soft summary" }, marked(entry.summary)) : "",
      h("div", { class: "fields" }, this.output ? stepFields(this.output, () => this.changed()) : []));
  }

  changed({ keepsText = false } = {}) {
    if (!keepsText) byID("recipe").value = this.recipe;
    this.update();
  }

  // The answer

  async request() {
    this.remember();
    this.running?.abort();
    const abort = new AbortController();
    this.running = abort;
    const { recipe, source } = this;
    const accept = byID("accept").value || this.accept;
    this.showSnippet();
    if (!this.catalogue.unsigned) return;
    byID("stage").setAttribute("aria-busy", "true");
    const options = { headers: { Accept: accept }, signal: abort.signal };
    try {
      // The original first: the variant's answer then says what it took without waiting for the same fetch.
      if (this.shownSource !== source) await this.loadOriginal(source, abort.signal);
      const variant = await picture(variantPath(recipe, source), options);
      const url = URL.createObjectURL(variant.blob);
      variant.size = await dimensions(url);
      variant.isSample = source.startsWith("sample:");
      if (abort.signal.aborted) return URL.revokeObjectURL(url);
      this.variant = variant;
      this.comparison.show(null, url);
      this.showFailure(variant.size ? null : new Failure(
        "This browser cannot show the format", `The answer is ${variant.type}; it can be saved from its URL.`));
      this.showFacts();
      this.showSnippet();
    } catch (error) {
      if (abort.signal.aborted) return;
      this.showFailure(error);
    } finally {
      if (this.running === abort) byID("stage").removeAttribute("aria-busy");
    }
  }

  async loadOriginal(source, signal) {
    const path = this.sample?.path ?? `original/unsigned/${segment(source)}`;
    const original = await picture(path, { signal });
    let url = URL.createObjectURL(original.blob);
    original.size = await dimensions(url);
    original.isShown = original.size !== null;
    if (!original.isShown) {
      // Browsers show no TIFF, for example; the server can.
      URL.revokeObjectURL(url);
      const shown = await picture(variantPath("png", source), { signal });
      url = URL.createObjectURL(shown.blob);
      original.size = await dimensions(url);
    }
    if (signal.aborted) return URL.revokeObjectURL(url);
    this.original = original;
    this.shownSource = source;
    this.comparison.show(url, null);
  }

  showFailure(error) {
    const place = byID("failure");
    place.hidden = error === null;
    byID("stage").classList.toggle("failed", error !== null);
    byID("panels").classList.toggle("stale", error !== null);
    for (const card of document.querySelectorAll(".step.faulty")) card.classList.remove("faulty");
    if (error === null) return place.replaceChildren();
    const isOurs = error instanceof Failure;
    place.replaceChildren(
      h("strong", {}, isOurs ? error.title : "The page has a problem"),
      h("p", {}, isOurs ? error.detail ?? "" : String(error)),
      isOurs && error.type ? h("code", {}, `${error.status} ${error.type}`) : "");
    const number = /^step (\d+)/.exec((isOurs && error.detail) || "")?.[1];
    if (number) {
      const on = [...byID("steps").children].filter((_, at) => !this.steps[at].isOff);
      on[number - 1]?.classList.add("faulty");
    }
  }

  showFacts() {
    const { original, variant } = this;
    const size = (answer) => answer.size ? `${answer.size.width} × ${answer.size.height}` : "–";
    const format = (answer) => answer.type.replace("image/", "").split(";")[0] || "–";
    const rows = [
      ["bytes", bytesText(original.blob.size), bytesText(variant.blob.size)],
      ["dimensions", size(original), size(variant)], ["format", format(original), format(variant)],
    ];
    byID("facts").replaceChildren(...rows.map(([name, before, after]) =>
      h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, before), h("td", {}, after))));
    const share = variant.blob.size / original.blob.size;
    byID("saved").textContent = share <= 1
      ? `${Math.round((1 - share) * 100)} % fewer bytes` : `${share.toFixed(1)} times the bytes`;
    byID("cache-sentence").textContent = cacheSentence(variant.cacheStatus, variant.isSample);
    byID("cache-status").textContent = variant.cacheStatus ?? "";
    this.showTimings(variant);
    byID("fields").replaceChildren(...variant.fields.map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  }

  /** One bar for each stage, beginning where the previous one ended. */
  showTimings(variant) {
    const total = variant.timings.reduce((sum, entry) => sum + entry.milliseconds, 0);
    const seen = variant.seconds * 1000;
    const scale = Math.max(total, seen, 0.001);
    let begin = 0;
    const bars = variant.timings.map((entry) => {
      const row = timingRow(entry.name, entry.title, begin / scale, entry.milliseconds / scale, entry.milliseconds);
      begin += entry.milliseconds;
      return row;
    });
    byID("timings").replaceChildren(
      ...bars, timingRow("in this browser", "from the request to the last byte", 0, seen / scale, seen, "whole"));
  }

  // Copying

  showSnippet() {
    if (!this.catalogue) return;
    const isSample = this.sample !== undefined;
    this.snippets = snippets({
      base: root.href, recipe: this.recipe, source: this.source,
      publicSource: isSample ? root.href + this.sample.path : this.source,
      isUnsigned: this.catalogue.unsigned, size: this.variant?.size, format: this.variant?.type.replace("image/", ""),
    });
    byID("snippet").textContent = this.snippets[this.snippet ?? "url"];
  }

  async copy() {
    const text = byID("snippet").textContent;
    const told = byID("copy-state");
    try {
      await navigator.clipboard.writeText(text);
      told.textContent = "Copied.";
    } catch {
      // Without TLS, other hosts than this one may not write to the clipboard.
      getSelection().selectAllChildren(byID("snippet"));
      told.textContent = "Selected; press Ctrl C.";
    }
    setTimeout(() => { told.textContent = ""; }, 2500);
  }
}

function timingRow(name, title, begin, length, milliseconds, style = "") {
  const bar = h("div", { class: "bar" });
  bar.style.marginInlineStart = `${begin * 100}%`;
  bar.style.width = `${Math.max(length * 100, 0.4)}%`;
  return h("li", { class: style, title },
    h("span", { class: "name" }, name), h("div", { class: "track" }, bar),
    h("span", { class: "number" }, millisecondsText(milliseconds)));
}

try {
  const [answer, accept] = await Promise.all([ask("page/catalogue.json"), acceptedTypes()]);
  new Page(new Catalogue(await answer.json()), accept);
} catch (error) {
  byID("failure").hidden = false;
  byID("failure").replaceChildren(
    h("strong", {}, error.title ?? "The page could not start"), h("p", {}, error.detail ?? String(error)));
}
"""#),
PageFile(name: "cache.js", type: "text/javascript; charset=utf-8", tag: "97de0368e5227c24", text: #"""
// The caches: a bar for each tier, read again while it is looked at, and the variants stored last.
import { Failure, ask } from "./answer.js";
import { byID, bytesText, h } from "./dom.js";

const TOKEN = "image-pipeline-admin-token";
const PERIOD = 2000;

export class CacheView {
  /** @param open called with `(recipe, source)` of a variant that is to be shown */
  constructor(open) {
    this.open = open;
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

  get authorization() {
    const token = sessionStorage.getItem(TOKEN);
    return token ? { Authorization: `Bearer ${token}` } : {};
  }

  tellToken() {
    const isKnown = sessionStorage.getItem(TOKEN) !== null;
    byID("token-state").textContent = isKnown ? "A token is kept until this tab closes." : "No token is set.";
    byID("forget-token").hidden = !isKnown;
  }

  /** Begins or stops to read. */
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
      const response = await ask("page/cache.json", { headers: this.authorization, cache: "no-store" });
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
      h("strong", {}, error instanceof Failure ? error.title : "Something went wrong"),
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
      const share = tier.budget > 0 ? tier.bytes / tier.budget : 0;
      bar.fill.style.width = `${Math.min(100, share * 100)}%`;
      bar.meter.setAttribute("aria-valuenow", String(Math.round(share * 100)));
      bar.meter.setAttribute("aria-valuetext", `${bytesText(tier.bytes)} of ${bytesText(tier.budget)}`);
      bar.size.textContent = `${bytesText(tier.bytes)} of ${bytesText(tier.budget)}`;
      const asked = tier.hits + tier.misses;
      const facts = {
        entries: tier.entries, hits: tier.hits, misses: tier.misses, evictions: tier.evictions,
        "hit ratio": asked === 0 ? "–" : `${Math.round((tier.hits / asked) * 100)} %`,
      };
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
    for (const variant of state.recent) kept.set(variant.key, this.cards.get(variant.key) ?? this.makeCard(variant));
    for (const [key, card] of this.cards) {
      if (kept.has(key)) continue;
      card.element.remove();
      if (card.url) URL.revokeObjectURL(card.url);
    }
    // Only what is in another place is moved, so that the keyboard's focus stays.
    [...kept.values()].forEach(({ element }, at) => {
      if (gallery.children[at] !== element) gallery.insertBefore(element, gallery.children[at] ?? null);
    });
    this.cards = kept;
  }

  makeCard(variant) {
    const image = h("img", { alt: `${variant.recipe} of ${variant.source ?? "a purged source"}` });
    const note = h("p", { class: "note", role: "status" });
    const source = variant.source;
    const canOpen = source && (/^https?:/.test(source) || source.startsWith("sample:"));
    const card = {
      element: h("figure", { class: "card variant", "data-key": variant.key },
        h("div", { class: "frame checkered" }, image),
        h("figcaption", {},
          h("code", {}, variant.recipe),
          h("p", { class: "soft clip", title: source ?? "" }, source ?? "source no longer stored"),
          h("p", { class: "soft number" },
            `${variant.width} × ${variant.height} · ${bytesText(variant.bytes)} · ${variant.type.replace("image/", "")}`),
          h("div", { class: "row" },
            canOpen && h("button", { type: "button", onclick: () => this.open(variant.recipe, source) }, "Open"),
            source && !source.startsWith("sample:") && h("button", {
              type: "button", class: "danger", title: "Removes the original and all of its variants",
              onclick: (event) => this.purge(source, event.target, note),
            }, "Purge source")),
          note)),
    };
    this.load(variant, image, card);
    return card;
  }

  async load(variant, image, card) {
    try {
      const response = await ask(`page/variants/${variant.key}/${variant.original}`, { headers: this.authorization });
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
      await ask(`source/${encodeURIComponent(source)}`, { method: "DELETE", headers: this.authorization });
      note.textContent = "Purged.";
      this.refresh();
    } catch (error) {
      note.textContent = [error.title, error.detail].filter(Boolean).join(": ");
    }
  }
}
"""#),
PageFile(name: "compare.js", type: "text/javascript; charset=utf-8", tag: "c10cae88853fbe74", text: #"""
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
"""#),
PageFile(name: "dom.js", type: "text/javascript; charset=utf-8", tag: "1ab068c764d0cb0f", text: #"""
/** Makes an element: properties that begin with `on` are listeners, `class`, `for`, `aria-*` and `data-*` attributes. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "list") element[name] = value;
    else element.setAttribute(name === "class" ? "class" : name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byID = (id) => document.getElementById(id);

let serial = 0;
/** An `id` that no other element has, for labels. */
export const freshID = () => `field-${++serial}`;

/** Icons are drawn with `currentColor`, so they follow the text. */
export function icon(name) {
  const paths = {
    up: "M4 10l4-4 4 4",
    down: "M4 6l4 4 4-4",
    remove: "M4.5 4.5l7 7m0-7l-7 7",
    copy: "M6 6V3.5h6.5V10H10M3.5 6H10v6.5H3.5z",
    divider: "M8 2v12M5.5 5.5L3 8l2.5 2.5M10.5 5.5L13 8l-2.5 2.5",
  };
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", paths[name]);
  svg.append(path);
  return svg;
}

export function bytesText(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = count / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export const millisecondsText = (value) =>
  value < 1 ? `${value.toFixed(2)} ms` : value < 100 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;

/** Waits until calls pause for a while, then runs the last one. */
export function debounced(milliseconds, action) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

/** Several elements of which one is chosen: arrow keys move, as in a tab list (ARIA APG, "Tabs"). */
export function tabList(container, tabs, choose) {
  const buttons = tabs.map(([name, title], index) =>
    h("button", {
      type: "button", role: "tab", class: "tab", "data-name": name, onclick: () => select(index),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const target =
          event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1
          : step ? (index + step + tabs.length) % tabs.length : null;
        if (target === null) return;
        event.preventDefault();
        select(target);
        buttons[target].focus();
      },
    }, title));
  function select(index) {
    buttons.forEach((button, at) => {
      button.setAttribute("aria-selected", String(at === index));
      button.tabIndex = at === index ? 0 : -1;
    });
    choose(tabs[index][0]);
  }
  container.setAttribute("role", "tablist");
  container.replaceChildren(...buttons);
  select(0);
  return { select: (name) => select(Math.max(0, tabs.findIndex(([own]) => own === name))) };
}

/** Text in which backticks mark code, as the catalogue writes it. */
export const marked = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
"""#),
PageFile(name: "fields.js", type: "text/javascript; charset=utf-8", tag: "ded8723683fd6a67", text: #"""
// The controls of a step, one per slot of its grammar (`grammar.js`).
import { freshID, h } from "./dom.js";

/** The controls of a step; `changed` is called after each change of `step.values`. */
export function stepFields(step, changed) {
  if (!step.slots) {
    const id = freshID();
    return [
      h("div", { class: "field wide" },
        h("label", { for: id }, "step as text"),
        h("input", {
          id, type: "text", value: step.text, spellcheck: false, autocapitalize: "off",
          oninput: (event) => {
            step.text = event.target.value;
            changed();
          },
        })),
    ];
  }
  return step.slots.map((slot, at) => {
    const set = (value) => {
      step.values[at] = value;
      changed();
    };
    return controls[slot.kind](slot, step.values[at], set, `${step.name} ${slot.label}`);
  }).filter(Boolean);
}

const controls = {
  constant: () => null,

  flag(slot, value, set) {
    const id = freshID();
    return h("div", { class: "field check" },
      h("input", {
        id, type: "checkbox", checked: value !== "", onchange: (event) => set(event.target.checked ? slot.words[0] : ""),
      }),
      h("label", { for: id }, slot.label));
  },

  choice(slot, value, set, title) {
    return labelled(slot.label, (id) => select(id, slot, value, set, title));
  },

  colour(slot, value, set, title) {
    return labelled(slot.label, (id) => {
      const text = h("input", {
        id, type: "text", value, size: 9, maxLength: 8, spellcheck: false, pattern: "[0-9a-fA-F]{3,8}",
        oninput: () => {
          well.value = opaque(text.value) ?? well.value;
          set(text.value);
        },
      });
      const well = h("input", {
        type: "color", value: opaque(value) ?? "#000000", "aria-label": `${title}, colour picker`,
        oninput: () => {
          text.value = well.value.slice(1) + (text.value.length === 8 ? text.value.slice(6) : "");
          set(text.value);
        },
      });
      return h("div", { class: "row" }, well, text);
    });
  },

  list(slot, value, set, title) {
    const chosen = new Set(value.split("+").filter(Boolean));
    return h("fieldset", { class: "field list" },
      h("legend", {}, slot.label),
      slot.words.map((word) => {
        const id = freshID();
        return h("span", { class: "check" },
          h("input", {
            id, type: "checkbox", checked: chosen.has(word), "aria-label": `${title} ${word}`,
            onchange: (event) => {
              if (event.target.checked) chosen.add(word); else chosen.delete(word);
              set(slot.words.filter((own) => chosen.has(own)).join("+"));
            },
          }),
          h("label", { for: id }, word));
      }));
  },

  text(slot, value, set) {
    return labelled(slot.label, (id) => h("input", {
      id, type: "text", value, placeholder: slot.hint ?? "", spellcheck: false, autocapitalize: "off",
      oninput: (event) => set(event.target.value.trim()),
    }), slot.count > 1 ? "wide" : "");
  },

  /** Numbers with something between them: `300x200`, `0.5x0.3`, `640x480+10+20`. */
  parts(slot, value, set, title) {
    const numbers = value.split(/[x+]/);
    // `300` stands for a square.
    if (slot.label === "size" && value !== "" && !value.includes("x")) numbers.push(numbers[0]);
    const inputs = slot.parts.map((part, index) => typeof part === "string" ? part : h("input", {
      type: "number", value: numbers[index / 2] ?? "", placeholder: part.letter, min: part.min, max: part.max,
      step: part.max <= 1 ? 0.05 : 1, "aria-label": `${title} ${part.label}`, inputMode: "decimal",
      oninput: () => set(text()),
    }));
    function text() {
      const given = inputs.filter((input) => typeof input !== "string");
      if (given.every((input) => input.value === "")) return "";
      // The optional rest goes together.
      const length = given.length > 2 && given.slice(2).every((input) => input.value === "") ? 3 : inputs.length;
      return inputs.slice(0, length)
        .map((input, at) => typeof input === "string" ? input : input.value || (at > 2 ? "0" : "")).join("");
    }
    return h("fieldset", { class: `field parts${slot.isRequired || slot.parts.length > 3 ? " wide" : ""}` },
      h("legend", {}, slot.label),
      h("div", { class: "row" },
        inputs.map((input) => typeof input === "string" ? h("span", { class: "between" }, input === "x" ? "×" : input)
          : input)));
  },

  number(slot, value, set, title) {
    return numeric(slot, value, set, title, null);
  },

  length(slot, value, set, title) {
    return numeric(slot, value, set, title, "pct");
  },
};

/** A number with a slider beside it; also words (`lossless`) or a unit (`pct`) if the slot takes them. */
function numeric(slot, value, set, title, unit) {
  const isShare = unit !== null && value.endsWith(unit);
  const number = slot.words.includes(value) ? "" : value.replace(/(pct|%)$/, "");
  const increment = slot.max - slot.min <= 10 ? 0.05 : slot.min % 1 !== 0 ? 0.1 : 1;
  return labelled(slot.label, (id) => {
    const units = unit && h("select", {
      "aria-label": `${title}, unit`,
      onchange: () => {
        slider.max = top();
        tell();
      },
    }, h("option", { value: "" }, "px"), h("option", { value: unit, selected: isShare }, "%"));
    const word = slot.words.length === 0 ? null : h("select", {
      "aria-label": `${title}, word`,
      onchange: () => {
        if (word.value) input.value = "";
        else if (slot.isRequired) input.value = String(slot.initial ?? slot.min);
        set(word.value || input.value);
      },
    }, h("option", { value: "" }, "number"),
    slot.words.map((own) => h("option", { value: own, selected: own === value }, own)));
    const input = h("input", {
      id, type: "number", value: number, min: slot.min, max: slot.max, step: "any", inputMode: "decimal",
      placeholder: Number.isNaN(Number(slot.initial)) ? "auto" : slot.initial,
      oninput: () => {
        slider.value = input.value;
        tell();
      },
    });
    const slider = h("input", {
      type: "range", min: slot.min, max: top(), step: increment, "aria-label": `${title}, slider`,
      oninput: () => {
        input.value = String(Number(Number(slider.value).toFixed(4)));
        tell();
      },
    });
    slider.value = number === "" ? slot.initial ?? slot.min : number;
    function top() {
      return units && units.value === unit ? 100 : sliderTop(slot);
    }
    function tell() {
      if (word && input.value !== "") word.value = "";
      set(input.value === "" ? "" : input.value + (units ? units.value : ""));
    }
    return h("div", { class: "row number" }, slider, input, units, word);
  }, "wide");
}

/** Ranges are wide so that nothing is refused; sliders move where values are common. */
function sliderTop(slot) {
  return slot.max <= 360 ? slot.max : 400;
}

function select(id, slot, value, set, title) {
  const options = slot.words.map((word) => h("option", { value: word, selected: word === value }, word));
  if (!slot.isRequired) options.unshift(h("option", { value: "", selected: value === "" }, "default"));
  if (value !== "" && !slot.words.includes(value)) options.push(h("option", { value, selected: true }, value));
  return h("select", { id, "aria-label": title, onchange: (event) => set(event.target.value) }, options);
}

function labelled(label, control, style = "") {
  const id = freshID();
  return h("div", { class: `field ${style}` }, h("label", { for: id }, label), control(id));
}

function opaque(text) {
  if (/^[0-9a-fA-F]{3}$/.test(text)) return "#" + [...text].map((digit) => digit + digit).join("").toLowerCase();
  return /^[0-9a-fA-F]{6}([0-9a-fA-F]{2})?$/.test(text) ? "#" + text.slice(0, 6).toLowerCase() : null;
}
"""#),
PageFile(name: "grammar.js", type: "text/javascript; charset=utf-8", tag: "3eb3ec892a3fbcfa", text: #"""
// From a catalogue entry's grammar to the slots of a form, and between a step's text and the values of those slots.
//
//     thumbnail:SIZE[:fit|fill|pad|stretch][:up][:gravity=G]
//
// A slot is one argument (or, as `[:R:R:R]`, several that come together). Words in lower case and numbers stand for
// themselves, words in upper case for a value whose range the entry's `ranges` state: "S 0.3…100 (1)" means 0.3 to 100,
// by default 1. A step that this does not understand keeps its text and is edited as text.

const WORD = /^[a-z0-9-]+$/;

/** The slots of an entry. */
export function slots(entry) {
  const rest = entry.grammar.slice(entry.name.length);
  const found = [];
  const pattern = /\[:([^\]]+)\]|:([^:[]+(?:\[[^:][^\]]*\])?)/g;
  for (const [, optional, required] of rest.matchAll(pattern)) {
    found.push(slot(optional ?? required, optional === undefined, entry));
  }
  return found;
}

function slot(text, isRequired, entry) {
  const equals = /^([a-z]+)=(.*)$/.exec(text);
  const key = equals ? equals[1] : null;
  const alternatives = (equals ? equals[2] : text).split("|");
  const words = alternatives.filter((part) => WORD.test(part));
  const placeholder = alternatives.find((part) => !WORD.test(part)) ?? null;
  const known = key ? entry.words?.[key] : undefined;
  const base = { key, isRequired, words, placeholder, count: 1 };
  if (!placeholder) {
    const kind = words.length > 1 || key ? "choice" : isRequired ? "constant" : "flag";
    return { ...base, kind, label: key ?? (kind === "choice" ? "mode" : words[0]) };
  }
  const count = placeholder.split(":").length;
  if (count > 1) return { ...base, kind: "text", count, label: `the other ${count}`, hint: placeholder };
  if (placeholder === "LIST" && known) return { ...base, kind: "list", words: known, label: key };
  if (known) return { ...base, kind: "choice", words: known, label: key };
  if (placeholder.startsWith("RRGGBB")) return { ...base, kind: "colour", label: "colour" };
  if (placeholder === "SIZE" && !key) {
    const parts = [
      { letter: "W", label: "width", ...range("edges", entry.ranges) }, "x",
      { letter: "H", label: "height", ...range("edges", entry.ranges) },
    ];
    return { ...base, kind: "parts", parts, label: "size" };
  }
  const parts = composite(placeholder, entry.ranges);
  if (parts) return { ...base, kind: "parts", parts, label: key ?? (parts.length > 3 ? "area" : "size") };
  const limits = range(key ?? placeholder, entry.ranges) ?? range(placeholder, entry.ranges);
  const label = key ?? names[placeholder] ?? entry.name;
  if (limits) {
    const takesShare = /…100 `pct`/.test(entry.ranges);
    return { ...base, kind: takesShare ? "length" : "number", label, ...limits };
  }
  return { ...base, kind: "text", label, hint: placeholder === "SIZE" ? "20kB" : placeholder };
}

const names = {
  NAME: "name", DEG: "degrees", Q: "quality", R: "radius", T: "amount", S: "strength", F: "factor",
};

/** `WxH`, `XxY`, `WxH[+X+Y]`: numbers and what stands between them; null for anything else. */
function composite(text, ranges) {
  const match = /^([A-Z])([x+])([A-Z])(?:\[([x+])([A-Z])([x+])([A-Z])\])?$/.exec(text);
  if (!match) return null;
  const labels = { W: "width", H: "height", X: "x", Y: "y" };
  const part = (letter, isOptional = false) => ({
    letter, label: labels[letter] ?? letter, isOptional, ...range(letter, ranges),
  });
  const parts = [part(match[1]), match[2], part(match[3])];
  if (match[4]) parts.push(match[4], part(match[5], true), match[6], part(match[7], true));
  return parts;
}

/** What `ranges` say of a name: `{ min, max, initial }`; null if they say nothing. */
export function range(name, ranges) {
  const number = "([0-9]+(?:\\.[0-9]+)?)";
  const pattern = new RegExp(
    `(?:^|[^A-Za-z])${name}(?:, [A-Z])* ${number}…${number}(?:[^;,.(]*\\(([^)]*)\\))?`);
  const match = pattern.exec(ranges) ?? (name === "T" ? new RegExp(`^${number}…${number}()`).exec(ranges) : null);
  if (!match) return null;
  return { min: Number(match[1]), max: Number(match[2]), initial: match[3] || undefined };
}

/** The steps of a recipe's text, as far as the catalogue knows them. */
export function parseRecipe(text, catalogue) {
  return text.split(",").map((step) => step.trim()).filter(Boolean).map((step) => parseStep(step, catalogue));
}

/** A step: `{ name, entry, slots, values }`, or `{ name, text }` if the grammar does not explain it. */
export function parseStep(text, catalogue) {
  const [name, ...given] = text.split(":");
  const entry = catalogue.entry(name);
  if (!entry) return { name, text };
  const all = slots(entry);
  const values = all.map(() => "");
  const free = (test) => all.findIndex((slot, at) => values[at] === "" && test(slot));
  for (let at = 0; at < given.length; at += 1) {
    const argument = given[at];
    const equals = /^([a-z]+)=(.+)$/.exec(argument);
    let index;
    if (equals) {
      index = free((slot) => slot.key === equals[1]);
      if (index >= 0) values[index] = equals[2];
    } else {
      index = free((slot) => !slot.key && slot.words.includes(argument));
      if (index < 0) index = free((slot) => !slot.key && slot.placeholder !== null);
      if (index >= 0) {
        const { count } = all[index];
        values[index] = given.slice(at, at + count).join(":");
        at += count - 1;
      }
    }
    if (index < 0) return { name, text };
  }
  const step = { name, entry, slots: all, values };
  return all.some((slot, at) => slot.isRequired && slot.kind !== "constant" && values[at] === "")
    ? { name, text } : step;
}

export function stepText(step) {
  if (!step.slots) return step.text;
  const parts = [step.name];
  step.slots.forEach((slot, at) => {
    const value = slot.kind === "constant" ? slot.words[0] : step.values[at];
    if (value !== "") parts.push(slot.key ? `${slot.key}=${value}` : value);
  });
  return parts.join(":");
}

/** The step that the form begins with: the catalogue's example. */
export function exampleStep(entry, catalogue) {
  const own = entry.example.split(",").find((step) => step.split(":")[0] === entry.name);
  return parseStep(own ?? entry.name, catalogue);
}

/** What the page knows of the server's catalogue. */
export class Catalogue {
  constructor(json) {
    Object.assign(this, json);
    this.byName = new Map(json.entries.map((entry) => [entry.name, entry]));
    for (const preset of json.presets) {
      const name = `@${preset.name}`;
      this.byName.set(name, {
        name, role: "preset", grammar: name, summary: `Stands for ${preset.recipe}.`, ranges: "", example: name,
      });
    }
  }

  entry(name) {
    return this.byName.get(name);
  }

  ofRole(...roles) {
    return [...this.byName.values()].filter((entry) => roles.includes(entry.role));
  }
}
"""#),
PageFile(name: "icon.svg", type: "image/svg+xml", tag: "0e15ed39812d49a1", text: #"""
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#3566c8"/><path d="M6 24l7-10 5 6 3-4 5 8z" fill="#fff"/><circle cx="21.5" cy="10" r="2.8" fill="#ffd479"/></svg>
"""#),
PageFile(name: "index.html", type: "text/html; charset=utf-8", tag: "3582de800e7797b1", text: #"""
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Image Pipeline</title>
<link rel="icon" href="page/eee4a9067e58/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="page/eee4a9067e58/style.css">
<script type="module" src="page/eee4a9067e58/app.js"></script>
</head>
<body>
<a class="skip" id="skip" href="#stage">To the picture</a>
<header class="top">
  <h1><img src="page/eee4a9067e58/icon.svg" alt="" width="22" height="22"> Image Pipeline</h1>
  <nav aria-label="Views">
    <a id="picture-link" href="#" aria-current="page">Picture</a>
    <a id="cache-link" href="#cache">Caches</a>
  </nav>
</header>
<noscript><p class="banner">This page builds recipes with JavaScript, which is off.</p></noscript>
<p class="banner" id="unsigned-off" hidden>This server answers signed URLs only, and the page signs nothing, so it shows
  no pictures. Recipes can still be built and copied: <code>pipectl sign</code> makes a URL of one.</p>

<main id="picture-view">
  <div class="controls">
    <section class="card" aria-labelledby="source-title">
      <h2 id="source-title">Source</h2>
      <div class="samples" id="samples" role="radiogroup" aria-label="Sample pictures"></div>
      <form id="source-form">
        <label for="source">or the URL of a picture</label>
        <div class="row">
          <input id="source" type="url" placeholder="https://example.org/photo.jpg" autocomplete="off" spellcheck="false">
          <button type="submit">Load</button>
        </div>
      </form>
    </section>

    <section aria-labelledby="recipe-title">
      <div class="heading"><h2 id="recipe-title">Recipe</h2>
        <select id="add-step" aria-label="Add a step"><option value="">Add a step …</option></select>
      </div>
      <ol id="steps" class="steps"></ol>
      <p id="steps-empty" class="soft empty" hidden>No steps: the picture is only encoded again.</p>
      <section class="card step" aria-labelledby="output-title">
        <h3 id="output-title">Output</h3>
        <div id="output"></div>
        <div class="field wide">
          <label for="accept">what the client accepts, for <code>auto</code></label>
          <select id="accept">
            <option value="">as this browser</option>
            <option value="image/jxl,image/avif,image/webp,image/*">JPEG XL, AVIF, WebP</option>
            <option value="image/avif,image/webp,image/*">AVIF, WebP</option>
            <option value="image/webp,image/*">WebP</option>
            <option value="image/*">none of them</option>
          </select>
        </div>
      </section>
      <div class="card">
        <label for="recipe">recipe as text</label>
        <textarea id="recipe" rows="3" spellcheck="false" autocapitalize="off" autocomplete="off"></textarea>
      </div>
    </section>
  </div>

  <div class="results">
    <section aria-labelledby="picture-title">
      <div class="heading"><h2 id="picture-title">Picture</h2><div id="layouts" class="tabs" aria-label="Layout"></div></div>
      <div id="stage" class="checkered" data-layout="divided">
        <figure class="original"><img id="original-image" alt=""><figcaption>Original</figcaption></figure>
        <figure class="variant"><img id="variant-image" alt=""><figcaption>Variant</figcaption></figure>
        <div id="divider" role="slider" tabindex="0" aria-label="Divider between original and variant"
          aria-orientation="horizontal" aria-valuemin="0" aria-valuemax="100" aria-valuenow="50"></div>
        <div class="progress" aria-hidden="true"></div>
        <div id="failure" class="failure" role="alert" hidden></div>
      </div>
    </section>

    <div class="panels" id="panels">
      <section class="card" aria-labelledby="facts-title">
        <h2 id="facts-title">Before and after</h2>
        <table>
          <thead><tr><td></td><th scope="col">original</th><th scope="col">variant</th></tr></thead>
          <tbody id="facts"></tbody>
        </table>
        <p class="saved" id="saved"></p>
      </section>
      <section class="card" aria-labelledby="timings-title">
        <h2 id="timings-title">Time</h2>
        <ol id="timings" class="timings"></ol>
        <p id="cache-sentence" role="status"></p>
        <code id="cache-status" class="soft"></code>
      </section>
      <section class="card span" aria-labelledby="copy-title">
        <div class="heading"><h2 id="copy-title">Use it</h2><div id="snippet-tabs" class="tabs" aria-label="Language"></div></div>
        <div class="snippet">
          <pre tabindex="0" aria-label="Text to copy"><code id="snippet"></code></pre>
          <button type="button" id="copy">Copy</button>
        </div>
        <p id="copy-state" class="soft" role="status"></p>
        <details><summary>Header fields of the answer</summary><dl id="fields" class="fieldlist"></dl></details>
      </section>
    </div>
  </div>
</main>

<main id="cache-view" hidden>
  <div id="cache-error" class="failure" role="alert" hidden></div>
  <section aria-labelledby="tiers-title">
    <h2 id="tiers-title">Tiers</h2>
    <div id="tiers" class="tiers"></div>
  </section>
  <section aria-labelledby="recent-title">
    <h2 id="recent-title">Variants stored last</h2>
    <p id="recent-empty" class="soft" hidden>No variants are stored yet.</p>
    <div id="recent" class="gallery"></div>
  </section>
  <section class="card" aria-labelledby="token-title">
    <h2 id="token-title">Admin token</h2>
    <p class="soft">Purging needs the admin token, and so does this view from other machines. It is kept in this tab only.
      <span id="token-state"></span></p>
    <form id="token-form" class="row">
      <label for="token" class="hidden">Admin token</label>
      <input id="token" type="password" autocomplete="off" placeholder="admin token">
      <button type="submit">Use</button>
      <button type="button" id="forget-token" hidden>Forget</button>
    </form>
  </section>
</main>
</body>
</html>
"""#),
PageFile(name: "snippets.js", type: "text/javascript; charset=utf-8", tag: "7d29f780f1a9765a", text: #"""
// What can be copied: each of these asks for the picture that the page shows.

const htmlText = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
const shellText = (text) => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
const swiftText = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** A source or recipe as one path segment; what may be raw there stays readable. */
export const segment = (text) =>
  encodeURIComponent(text).replace(/%(3A|2C|3D|40|2B)/g, (escape) => decodeURIComponent(escape));

export const variantPath = (recipe, source) => `variant/unsigned/${segment(recipe || "auto")}/${segment(source)}`;

/** The recipe for screens with more pixels: `dpr` multiplies all sizes after it. */
export function dense(recipe, ratio) {
  const steps = recipe.split(",").filter(Boolean);
  const at = steps.findIndex((step) => step.startsWith("dpr:"));
  if (at >= 0) {
    steps[at] = `dpr:${Number(steps[at].slice(4)) * ratio}`;
    return steps.join(",");
  }
  const loading = steps.filter((step) => /^(orient|profile|frames):/.test(step)).length;
  steps.splice(loading, 0, `dpr:${ratio}`);
  return steps.join(",");
}

/**
 * @param base where the site is mounted
 * @param recipe text; may be empty
 * @param source as in a path of this server: a URL or `sample:NAME`
 * @param publicSource the same for programs elsewhere: a URL
 * @param size the variant's, if it is known
 * @param isUnsigned whether the server answers URLs without a signature; else the command that signs one stands for it
 */
export function snippets({ base, recipe, source, publicSource, size, format, isUnsigned }) {
  const url = (text) => base + variantPath(text, source);
  const name = (publicSource.split(/[?#]/)[0].split("/").pop() || "picture").replace(/\.\w+$/, "");
  const isPrivate = /^https?:\/\/(127\.|localhost|\[::1\])/.test(publicSource);
  const extension = format === "jpeg" ? "jpg" : format || "img";
  const ratios = [1, 2, 3];
  const sign = `pipectl sign variant ${shellText(recipe || "auto")} ${shellText(source)}`;
  const attributes = size ? ` width="${size.width}" height="${size.height}"` : "";
  return {
    url: isUnsigned ? url(recipe) : sign,
    html: [
      "<img", `  src="${htmlText(url(recipe))}"`,
      `  srcset="${ratios.map((ratio) => `${htmlText(ratio === 1 ? url(recipe) : url(dense(recipe, ratio)))} ${ratio}x`)
        .join(",\n          ")}"`,
      ` ${attributes} alt="" loading="lazy">`,
    ].join("\n"),
    pipectl: [
      `pipectl get ${shellText(publicSource)}`, recipe && `-r ${shellText(recipe)}`,
      isPrivate && "--set allowPrivateAddresses=true", `-o ${shellText(`${name}.${extension}`)}`,
    ].filter(Boolean).join(" \\\n    "),
    swift: [
      "import Pipeline", "",
      isPrivate
        ? "var configuration = PipelineConfiguration()\nconfiguration.fetch.allowPrivateAddresses = .all\n"
          + "let pipeline = try ImagePipeline(configuration)"
        : "let pipeline = try ImagePipeline()",
      `let image = try await pipeline.image(\n    for: ${swiftText(publicSource)},`,
      `    recipe: ${swiftText(recipe || "auto")})`,
      "print(image.width, image.height, image.bytes.count)", "await pipeline.shutdown()",
    ].join("\n"),
  };
}
"""#),
PageFile(name: "style.css", type: "text/css; charset=utf-8", tag: "e72ff9f83ef6e84b", text: #"""
:root {
  color-scheme: light dark;
  --page: #f5f5f2; --card: #fff; --ink: #1c1c1f; --soft: #64646b; --line: #dfdfd9; --field: #fafaf8;
  --check-a: #e7e7e3; --check-b: #f6f6f4; --accent: #2f5fc0; --accent-ink: #fff; --tint: #e9effb; --raised: #fff;
  --bad: #b3261e; --bad-page: #fdf0ee; --good: #1d7a46;
  --radius: 12px; --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #131315; --card: #1c1c1f; --ink: #ececee; --soft: #a0a0a8; --line: #323238; --field: #232327;
    --check-a: #26262a; --check-b: #1d1d20; --accent: #8fb3ff; --accent-ink: #10131a; --tint: #212a3d; --raised: #3a3a41;
    --bad: #ff9088; --bad-page: #2d1b1a; --good: #6fd39b;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html { scroll-padding-top: 72px; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
}
h1, h2, h3, p, figure, dl, ol, dd { margin: 0; padding: 0; }
h2 { font-size: 13px; font-weight: 600; letter-spacing: .02em; }
h3 { font: 600 14px/1.3 var(--mono); }
code, pre, textarea { font-family: var(--mono); font-size: 12.5px; }
.soft { color: var(--soft); }
.number { font-variant-numeric: tabular-nums; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: 12px; top: -60px; z-index: 10; padding: 8px 14px; border-radius: 8px;
  background: var(--accent); color: var(--accent-ink); }
.skip:focus { top: 10px; }
:focus-visible { outline: 2.5px solid var(--accent); outline-offset: 2px; border-radius: 6px; }

.top {
  position: sticky; top: 0; z-index: 5; display: flex; align-items: center; gap: 24px;
  padding: 10px clamp(14px, 3vw, 36px); background: color-mix(in srgb, var(--page) 86%, transparent);
  backdrop-filter: blur(10px); border-bottom: 1px solid var(--line);
}
.top h1 { display: flex; align-items: center; gap: 10px; font-size: 16px; font-weight: 650; letter-spacing: -.01em; }
.top nav { display: flex; gap: 4px; margin-inline-start: auto; }
.top nav a { padding: 6px 14px; border-radius: 999px; color: var(--soft); text-decoration: none; font-weight: 550; }
.top nav a:hover { color: var(--ink); }
.top nav a[aria-current] { background: var(--tint); color: var(--accent); }
.banner { margin: 14px clamp(14px, 3vw, 36px) 0; padding: 12px 16px; border-radius: var(--radius); background: var(--tint); }

main { padding: 20px clamp(14px, 3vw, 36px) 48px; max-width: 1560px; margin: 0 auto; }
#picture-view { display: grid; grid-template-columns: minmax(300px, 372px) minmax(0, 1fr); gap: 24px; align-items: start; }
@media (min-width: 961px) {
  /* Each column scrolls by itself, so that the picture stays beside the controls. */
  body:not(:has(#picture-view[hidden])) { height: 100dvh; display: flex; flex-direction: column; }
  #picture-view { flex: 1; min-height: 0; width: 100%; padding-block: 0; }
  .controls, .results { max-height: 100%; overflow-y: auto; padding: 18px 4px 32px; margin-inline: -4px; scrollbar-width: thin; }
}
.controls, .results, .controls > section:not(.card) { display: flex; flex-direction: column; gap: 14px; min-width: 0; }
.card { padding: 14px 16px; border: 1px solid var(--line); border-radius: var(--radius); background: var(--card); }
.card > h2 { margin-bottom: 10px; }
.results > section .heading { margin-bottom: 8px; }
.heading { display: flex; align-items: center; justify-content: space-between; gap: 12px; min-height: 36px; }
.row { display: flex; align-items: center; gap: 8px; min-width: 0; }

input, select, textarea, button { font: inherit; color: inherit; }
input[type="text"], input[type="url"], input[type="number"], input[type="password"], select, textarea {
  width: 100%; min-width: 0; min-height: 36px; padding: 6px 10px; border: 1px solid var(--line); border-radius: 8px;
  background: var(--field);
}
textarea { display: block; margin-top: 6px; resize: vertical; line-height: 1.5; overflow-wrap: anywhere; font-family: var(--mono); font-size: 12.5px; }
input::placeholder, textarea::placeholder { color: var(--soft); opacity: .8; }
input:user-invalid { border-color: var(--bad); }
select { padding-inline-end: 4px; }
#add-step { width: auto; max-width: 190px; border-color: transparent; background: var(--tint); color: var(--accent); font-weight: 550; }
#add-step option, #add-step optgroup { color: var(--ink); background: var(--card); }
button {
  min-height: 36px; padding: 6px 14px; border: 1px solid var(--line); border-radius: 8px; background: var(--card);
  cursor: pointer; font-weight: 550; white-space: nowrap;
}
button:hover { border-color: var(--soft); }
button:disabled { opacity: .3; cursor: default; }
button.quiet { display: grid; place-items: center; width: 30px; min-height: 30px; padding: 0; border-color: transparent;
  background: transparent; color: var(--soft); }
button.quiet:hover:not(:disabled) { background: var(--field); color: var(--ink); }
button.danger { color: var(--bad); }
.icon { width: 16px; height: 16px; fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linecap: round;
  stroke-linejoin: round; }
input[type="checkbox"] { width: 17px; height: 17px; margin: 0; accent-color: var(--accent); flex: none; }
input[type="range"] { flex: 1 1 90px; width: auto; min-width: 60px; margin: 0; accent-color: var(--accent); }
input[type="color"] { width: 40px; height: 36px; padding: 3px; border: 1px solid var(--line); border-radius: 8px;
  background: var(--field); flex: none; }
label, legend { font-size: 12.5px; color: var(--soft); padding: 0; }
fieldset { margin: 0; padding: 0; border: 0; min-width: 0; }

.samples { display: grid; grid-template-columns: repeat(auto-fit, minmax(84px, 1fr)); gap: 8px; margin-bottom: 12px; }
.hidden-radio { position: absolute; opacity: 0; pointer-events: none; }
.sample { display: block; border: 2px solid transparent; border-radius: 10px; cursor: pointer; overflow: hidden;
  background: var(--field); text-align: center; }
.sample img { display: block; width: 100%; height: 58px; object-fit: cover; }
.sample span { display: block; padding: 3px 4px 4px; }
.hidden-radio:checked + .sample { border-color: var(--accent); color: var(--accent); }
.hidden-radio:focus-visible + .sample { outline: 2.5px solid var(--accent); outline-offset: 2px; }
#source-form label { display: block; margin-bottom: 5px; }

.steps { display: flex; flex-direction: column; gap: 10px; list-style: none; }
.steps:empty { display: none; }
.step { padding: 10px 12px 12px 14px; }
.step header { display: flex; align-items: center; gap: 4px; }
.step header h3 { flex: 1; padding-inline-start: 6px; overflow-wrap: anywhere; }
.step .summary { font-size: 12.5px; line-height: 1.4; margin: 2px 0 8px; }
.step.off .fields, .step.off .summary, .step.off h3 { opacity: .45; }
.step.faulty { border-color: var(--bad); background: var(--bad-page); }
#output-title { margin-bottom: 8px; font: 600 13px/1.4 inherit; font-family: inherit; }
.fields { display: grid; grid-template-columns: 1fr 1fr; gap: 8px 12px; }
.fields:empty { display: none; }
.field { display: flex; flex-direction: column; gap: 3px; min-width: 0; }
#output > .field, #output > .summary { margin-bottom: 8px; }
.field.wide { grid-column: 1 / -1; }
.parts:not(.wide) input { padding-inline: 6px; }
.field.check { flex-direction: row; align-items: center; gap: 8px; min-height: 36px; align-self: end; }
.field.check label, .list label { color: var(--ink); font-size: 14px; }
.list { flex-direction: row; flex-wrap: wrap; gap: 4px 14px; grid-column: 1 / -1; }
.list .check { display: inline-flex; align-items: center; gap: 6px; margin-inline-end: 14px; min-height: 30px; }
.row.number input[type="number"] { flex: 0 0 82px; width: 82px; }
.row.number select { flex: 0 1 auto; width: auto; }
.between { color: var(--soft); flex: none; }
.empty { padding: 4px 2px; font-size: 13.5px; }

.checkered { background: repeating-conic-gradient(var(--check-a) 0 25%, var(--check-b) 0 50%) 0 0 / 22px 22px; }
#stage {
  --divider: 50%; position: relative; display: grid; height: clamp(250px, 50vh, 600px); overflow: hidden;
  border: 1px solid var(--line); border-radius: var(--radius); touch-action: pan-y; user-select: none;
}
#stage figure { grid-area: 1 / 1; position: relative; min-width: 0; min-height: 0; padding: 14px; }
#stage img { display: block; width: 100%; height: 100%; object-fit: contain; }
#stage img:not([src]) { visibility: hidden; }
#stage figcaption { position: absolute; top: 10px; padding: 2px 10px; border-radius: 999px; font-size: 12px; font-weight: 550;
  background: color-mix(in srgb, var(--card) 84%, transparent); color: var(--ink); }
.original figcaption { left: 10px; } .variant figcaption { right: 10px; }
#stage[data-layout="divided"] { cursor: ew-resize; }
#stage[data-layout="divided"] .original { clip-path: inset(0 calc(100% - var(--divider)) 0 0); }
#stage[data-layout="divided"] .variant { clip-path: inset(0 0 0 var(--divider)); }
#divider { position: absolute; inset-block: 0; left: var(--divider); width: 2px; margin-left: -1px; background: #fff;
  box-shadow: 0 0 0 1px rgb(0 0 0 / .25); }
#divider::after { content: "‹ ›"; position: absolute; top: 50%; left: 50%; width: 40px; height: 40px; margin: -20px;
  display: grid; place-items: center; border-radius: 50%; background: var(--card); color: var(--ink); font-weight: 600;
  box-shadow: 0 1px 5px rgb(0 0 0 / .35); }
#divider:focus-visible { outline: none; }
#divider:focus-visible::after { outline: 3px solid var(--accent); outline-offset: 2px; }
#stage:not([data-layout="divided"]) #divider { display: none; }
#stage[data-layout="beside"] { grid-template-columns: 1fr 1fr; }
#stage[data-layout="beside"] .variant { grid-area: 1 / 2; border-inline-start: 1px solid var(--line); }
#stage[data-layout="alone"] .original { display: none; }
#stage[data-layout="alone"] img { object-fit: scale-down; }
#stage.failed .variant img { opacity: .25; }
.progress { position: absolute; inset: 0 0 auto; height: 3px; overflow: hidden; opacity: 0; transition: opacity .2s .25s; }
.progress::after { content: ""; display: block; width: 35%; height: 100%; background: var(--accent);
  animation: pass 1.1s ease-in-out infinite; }
[aria-busy="true"] .progress { opacity: 1; }
@keyframes pass { from { margin-left: -35%; } to { margin-left: 100%; } }
.failure { padding: 12px 16px; border: 1px solid var(--bad); border-radius: 10px; background: var(--bad-page); }
.failure strong { color: var(--bad); }
.failure p { overflow-wrap: anywhere; }
.failure code { color: var(--soft); overflow-wrap: anywhere; }
#stage .failure { position: absolute; inset: auto 14px 14px; cursor: auto; user-select: text; z-index: 2; }
#stage .failure:not([hidden]) { max-height: 70%; overflow: auto; }

.panels { display: grid; grid-template-columns: minmax(250px, 5fr) minmax(300px, 7fr); gap: 14px; }
.panels { transition: opacity .2s; }
.panels.stale > :not(.span) { opacity: .45; }
.span { grid-column: 1 / -1; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { font-weight: 400; color: var(--soft); font-size: 12.5px; text-align: start; padding: 5px 0; }
thead th, td { text-align: end; }
td { padding: 5px 0; }
td:last-child { font-weight: 600; }
tbody tr { border-top: 1px solid var(--line); }
.saved { margin-top: 8px; color: var(--good); font-weight: 600; }
.timings { list-style: none; display: flex; flex-direction: column; gap: 5px; margin-bottom: 10px; }
.timings li { display: grid; grid-template-columns: 104px 1fr 68px; align-items: center; gap: 10px; font-size: 13px; }
.timings .number { text-align: end; }
.track { height: 8px; border-radius: 4px; background: var(--field); overflow: hidden; }
.bar { height: 100%; border-radius: 4px; background: var(--accent); }
.whole { color: var(--soft); } .whole .bar { background: var(--soft); opacity: .45; }
#cache-status { display: block; overflow-wrap: anywhere; }

.tabs { display: flex; gap: 2px; padding: 3px; border-radius: 9px; background: var(--field); border: 1px solid var(--line); }
.tab { min-height: 28px; padding: 2px 12px; border: 0; background: transparent; color: var(--soft); font-size: 13px; border-radius: 6px; }
.tab[aria-selected="true"] { background: var(--raised); color: var(--ink); box-shadow: 0 1px 2px rgb(0 0 0 / .16); }
.snippet { position: relative; margin-top: 10px; }
.snippet pre { margin: 0; padding: 12px 92px 12px 14px; min-height: 58px; border-radius: 9px; background: var(--field);
  border: 1px solid var(--line); white-space: pre-wrap; word-break: break-all; line-height: 1.55; }
#copy { position: absolute; top: 9px; right: 9px; }
#copy-state:empty { display: none; }
details { margin-top: 10px; }
summary { cursor: pointer; color: var(--soft); font-size: 13.5px; }
.fieldlist { margin-top: 8px; font-size: 12.5px; }
.fieldlist div { display: grid; grid-template-columns: minmax(120px, 200px) 1fr; gap: 12px; padding: 4px 0; border-top: 1px solid var(--line); }
.fieldlist dt { color: var(--soft); overflow-wrap: anywhere; }
.fieldlist dd { overflow-wrap: anywhere; font-family: var(--mono); }

#cache-view { display: flex; flex-direction: column; gap: 26px; }
#cache-view > section > h2 { margin-bottom: 10px; }
.tiers { display: grid; grid-template-columns: repeat(auto-fill, minmax(max(270px, 30%), 1fr)); gap: 14px; }
.tier header { display: flex; justify-content: space-between; align-items: baseline; gap: 10px; }
.tier h3 { font-family: inherit; }
.meter { height: 10px; margin: 10px 0 12px; border-radius: 5px; background: var(--field); border: 1px solid var(--line); overflow: hidden; }
.fill { height: 100%; min-width: 2px; background: var(--accent); transition: width .6s; }
.counts { display: flex; flex-wrap: wrap; gap: 4px 18px; font-variant-numeric: tabular-nums; }
.counts dt { color: var(--soft); font-size: 12px; } .counts dd { font-weight: 600; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 14px; }
.variant.card { padding: 0; overflow: hidden; display: flex; flex-direction: column; }
.frame { display: grid; place-items: center; height: 170px; padding: 10px; }
.frame img { display: block; max-width: 100%; max-height: 150px; }
figcaption code { overflow-wrap: anywhere; }
.variant.card figcaption { padding: 10px 14px 12px; border-top: 1px solid var(--line); display: flex; flex-direction: column; gap: 3px; font-size: 13px; }
.variant.card .row { margin-top: 6px; flex-wrap: wrap; }
.clip { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.note:empty { display: none; } .note { color: var(--bad); overflow-wrap: anywhere; }
#token-form { margin-top: 8px; max-width: 460px; }

@media (max-width: 960px) {
  #picture-view { display: flex; flex-direction: column; align-items: stretch; }
  .results { display: contents; }
  /* The picture stays in sight of the controls. */
  .results > section { order: -1; position: sticky; top: 53px; z-index: 4; margin: -8px -4px 0; padding: 8px 4px 10px; background: var(--page); }
  #stage { height: clamp(200px, 32vh, 420px); }
}
@media (max-width: 640px) {
  .panels { grid-template-columns: 1fr; }
  .top { gap: 10px; }
  .top nav a { padding: 8px 12px; }
  .timings li { grid-template-columns: 92px 1fr 62px; }
  .fieldlist div { grid-template-columns: 1fr; gap: 0; }
  input[type="text"], input[type="url"], input[type="number"], input[type="password"], select, textarea, button { min-height: 42px; font-size: 16px; }
  button.quiet { width: 40px; min-height: 40px; }
  button.tab { min-height: 36px; font-size: 14px; padding-inline: 10px; }
  .tabs { overflow-x: auto; }
}
@media (prefers-reduced-motion: reduce) {
  * { animation-duration: 6s !important; transition: none !important; }
}
"""#),
    ]
}
