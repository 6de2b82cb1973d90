// The page, with a source, a recipe that consists of steps of the catalogue, and the variant that the server renders.
import { Failure, acceptedTypes, ask, cacheSentence, dimensions, picture, root } from "./answer.js";
import { CacheView, authorization } from "./cache.js";
import { byID, bytesText, debounced, freshID, h, icon, marked, millisecondsText, tabList } from "./dom.js";
import { Drawing } from "./draw.js";
import { stepFields } from "./fields.js";
import { Catalogue, exampleStep, parseRecipe, parseStep, stepText } from "./grammar.js";
import { FolderView, folderLink, folderOf } from "./folder.js";
import { score, scoreText } from "./score.js";
import { fileOf, segment, snippets, stemOf, variantPath } from "./snippets.js";
import { View, clamped } from "./view.js";

const START = "thumbnail:600x400:fill:gravity=attention,rounded-mask:24,auto";
/** The recipe with which the pictures of a folder are opened. */
const START_OF_FOLDER = "thumbnail:600x400,auto";

class Page {
  constructor(catalogue, accept) {
    this.catalogue = catalogue;
    this.accept = accept;
    this.steps = [];
    this.output = parseRecipe("auto", catalogue)[0];
    this.source = "";
    /** `original`, `reference` (the variant as lossless PNG), `variant` and `kept`, each with a `url` of its bytes. */
    this.pictures = {};
    this.view = new View();
    this.drawing = new Drawing(this.view, () => {
      this.compare("original");
      this.view.layouts.select("beside");
      this.view.zooms.select(0);
    }, (tool, area) => this.draw(tool, area));
    byID("against").addEventListener("change", () => this.showPictures());
    byID("keep").addEventListener("click", () => {
      this.hold("kept", this.pictures.variant);
      byID("against").querySelector("[value=kept]").disabled = false;
      this.compare("kept");
    });
    this.cache = new CacheView((recipe, source) => {
      location.hash = "";
      this.take(recipe, source);
    }, catalogue.folders);
    this.folder = new FolderView(catalogue);
    byID("folder-link").hidden = catalogue.folders.length === 0;
    if (!location.hash && catalogue.folders.length > 0) {
      history.replaceState(null, "", folderLink(`${catalogue.folders[0]}:`));
    }
    this.update = debounced(250, () => this.request());
    this.buildSource();
    this.buildRecipe();
    this.tabs = tabList(byID("snippet-tabs"), [
      ["url", "URL"],
      ...(catalogue.unsigned ? [["html", "HTML"], ["picture", "<picture>"], ["placeholder", "Placeholder"]] : []),
      ...(catalogue.systems.length > 0 ? [["systems", "Other systems"]] : []),
      ["pipectl", "pipectl"], ["swift", "Swift"],
    ], (name) => {
      this.snippet = name;
      this.showSnippet();
    });
    byID("copy").addEventListener("click", () => this.copy());
    byID("accept").addEventListener("change", () => this.request());
    byID("skip").addEventListener("click", (event) => {
      // Do not follow the link, because the fragment is the page's state.
      event.preventDefault();
      byID("divider").focus();
    });
    window.addEventListener("hashchange", () => this.navigate());
    byID("unsigned-off").hidden = catalogue.unsigned;
    const state = new URLSearchParams(location.hash.replace(/^#/, ""));
    const start = catalogue.folders.length > 0 ? START_OF_FOLDER : START;
    this.take(state.get("recipe") ?? start, state.get("source") ?? `sample:${catalogue.samples[0]?.name ?? ""}`);
    this.navigate();
    // Enable the controls only now, because earlier input would be lost.
    for (const id of ["source", "load", "add-step", "accept", "recipe"]) byID(id).disabled = false;
  }

  // Views

  navigate() {
    const isCache = location.hash === "#cache";
    const folder = folderOf(location.hash);
    const isPicture = !isCache && folder === null;
    for (const [name, isHere] of [["picture", isPicture], ["folder", folder !== null], ["cache", isCache]]) {
      byID(`${name}-view`).hidden = !isHere;
      const id = `${name}-link`;
      if (isHere) byID(id).setAttribute("aria-current", "page"); else byID(id).removeAttribute("aria-current");
    }
    if (folder !== null) this.folder.show(folder || `${this.catalogue.folders[0]}:`, this.recipe);
    if (isPicture && location.hash.includes("recipe=")) {
      const state = new URLSearchParams(location.hash.slice(1));
      if (state.get("recipe") !== this.recipe || state.get("source") !== this.source) {
        this.take(state.get("recipe") ?? "", state.get("source") ?? this.source);
      }
    }
    this.cache.isShown = isCache;
  }

  remember() {
    if (location.hash === "#cache" || folderOf(location.hash) !== null) return;
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

  get isOfFolder() {
    return this.catalogue.folders.includes(this.source.split(":")[0]);
  }

  get sample() {
    return this.catalogue.samples.find((sample) => `sample:${sample.name}` === this.source);
  }

  // Recipe

  buildRecipe() {
    const add = byID("add-step");
    const entries = this.catalogue.ofRole("preset", "operation", "ratio", "load");
    byID("step-names").append(...entries.map((entry) => h("option", { value: entry.name, label: entry.summary })));
    const take = (entry) => {
      if (!entry) return;
      add.value = "";
      this.add(entry.name);
    };
    // A step that is chosen from the list is added at once. A step that is typed, or of which only the beginning is
    // typed, is added when the user presses Enter.
    const exact = () => entries.find((entry) => entry.name === add.value.trim());
    add.addEventListener("input", (event) => {
      if (!event.inputType || event.inputType === "insertReplacementText") take(exact());
    });
    add.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !add.value.trim()) return;
      event.preventDefault();
      take(exact() ?? entries.find((entry) => entry.name.startsWith(add.value.trim())));
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

  /** The steps that are enabled. A preset that has an output is replaced with its steps without the output. */
  get stepTexts() {
    const expanded = (text) => text.split(",").map((step) => {
      const preset = step.startsWith("@") ? this.catalogue.preset(step.slice(1)) : undefined;
      return preset === undefined ? step : expanded(preset);
    }).join(",");
    const isOutput = (step) => this.catalogue.entry(step.name)?.role === "output";
    return this.steps.filter((step) => !step.isOff).map(stepText).filter(Boolean).flatMap((text) => {
      const all = parseRecipe(expanded(text), this.catalogue);
      return all.some(isOutput) ? all.filter((step) => !isOutput(step)).map(stepText) : [text];
    });
  }

  add(name) {
    const entry = this.catalogue.entry(name);
    const step = exampleStep(entry, this.catalogue);
    // Load options come first, followed by the ratio by which all sizes are multiplied.
    const rank = (own) => ["load", "ratio"].indexOf(this.catalogue.entry(own.name)?.role);
    const before = { load: [0], ratio: [0, 1] }[entry.role];
    const at = before ? this.steps.findLastIndex((own) => before.includes(rank(own))) + 1 : this.steps.length;
    this.steps.splice(at, 0, step);
    this.render(at);
    this.changed();
  }

  /** Creates the cards of all steps again. */
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
      h("p", { class: "soft summary", title: entry?.ranges ?? "" }, marked(entry?.summary ?? "This server does not have this step.")),
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

  // Response

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
    if (this.shownSource !== source) this.showStale(true);
    const options = { headers: { Accept: accept }, signal: abort.signal };
    try {
      // Load the original first, so that the time of the variant does not include the same fetch.
      if (this.shownSource !== source) await this.loadOriginal(source, abort.signal);
      const variant = await decoded(await picture(variantPath(recipe, source), options));
      if (abort.signal.aborted) return URL.revokeObjectURL(variant.url);
      const place = source.startsWith("sample:") ? "sample" : this.isOfFolder ? "folder" : null;
      Object.assign(variant, { recipe, place });
      this.hold("variant", variant);
      this.showFailure(variant.size ? null : new Failure(
        "This browser cannot show the format", `The response is ${variant.type}. You can download it.`));
      this.showPictures();
      this.showSnippet();
      await this.loadReference(source, abort.signal);
      if (abort.signal.aborted) return;
      const { reference } = this.pictures;
      variant.score = reference && await score(reference, variant);
      if (abort.signal.aborted) return;
      this.showPictures();
    } catch (error) {
      if (abort.signal.aborted) return;
      this.showFailure(error);
    } finally {
      if (this.running === abort) {
        byID("stage").removeAttribute("aria-busy");
        this.showPlaceholder();
      }
    }
  }

  async loadOriginal(source, signal) {
    const path = this.sample?.path ?? `original/unsigned/${segment(source)}`;
    const original = await picture(path, { signal });
    await decoded(original);
    if (!original.size) {
      // Browsers cannot show TIFF, for example, but the server can decode it.
      const shown = await decoded(await picture(variantPath("png", source), { signal }));
      URL.revokeObjectURL(original.url);
      Object.assign(original, { url: shown.url, size: shown.size });
    }
    if (signal.aborted) return URL.revokeObjectURL(original.url);
    this.hold("original", original);
    this.shownSource = source;
  }

  /** Loads the variant in lossless form. If the server does not render it, there is no reference. */
  async loadReference(source, signal) {
    // `png` without `lossless` may use the original's palette, and would then lose colors.
    const recipe = [...this.stepTexts, "png:lossless"].join(",");
    const known = this.pictures.reference;
    if (known?.recipe === recipe && known.source === source) return;
    try {
      const reference = await decoded(await picture(variantPath(recipe, source), { signal }));
      this.hold("reference", Object.assign(reference, { recipe, source }));
    } catch (error) {
      if (error.name === "AbortError") throw error;
      this.hold("reference", null);
    }
  }

  /** Stores a picture under its role, and frees the previous one's bytes if they are no longer needed. */
  hold(role, picture) {
    const old = this.pictures[role];
    this.pictures[role] = picture;
    if (old && !Object.values(this.pictures).includes(old)) URL.revokeObjectURL(old.url);
  }

  compare(role) {
    byID("against").value = role;
    this.showPictures();
  }

  showPictures() {
    const { original, variant } = this.pictures;
    if (!variant) return;
    const role = byID("against").value;
    const against = this.pictures[role] ?? original;
    const captions = { reference: "As PNG", original: "Original", kept: `Kept: ${against.recipe}` };
    this.view.show(0, against, against === original ? "Original" : captions[role]);
    this.view.show(1, variant, "Variant");
    this.drawing.mark(against === original ? this.marks : {});
    this.showFacts(against);
  }

  // Drawing

  /**
   * The marks on the original: the crop that the recipe begins with, and the focus of the first thumbnail. Positions
   * are fractions of the original's edges.
   */
  get marks() {
    const { width, height } = this.pictures.original.size ?? {};
    const numbers = /^(\d+)x(\d+)\+(\d+)\+(\d+)$/.exec(this.firstCrop?.values[0] ?? "")?.slice(1).map(Number);
    const crop = numbers && {
      x: numbers[2] / width, y: numbers[3] / height, width: numbers[0] / width, height: numbers[1] / height,
    };
    const thumbnail = this.steps.find((step) => step.name === "thumbnail" && !step.isOff);
    const text = thumbnail?.slots?.map((slot, at) => slot.key === "focus" ? thumbnail.values[at] : "").join("");
    const [x, y] = (text || "").split("x").map(Number);
    const area = crop ?? { x: 0, y: 0, width: 1, height: 1 };
    return { crop, focus: text && { x: area.x + x * area.width, y: area.y + y * area.height } };
  }

  get firstCrop() {
    const first = this.steps.find((step) => this.catalogue.entry(step.name)?.role !== "load");
    return first?.name === "crop" && first.slots && !first.isOff ? first : undefined;
  }

  draw(tool, area) {
    const { size } = this.pictures.original;
    if (tool === "crop") {
      const [left, top] = [Math.round(area.x * size.width), Math.round(area.y * size.height)];
      const [width, height] = [
        Math.round((area.x + area.width) * size.width) - left, Math.round((area.y + area.height) * size.height) - top];
      // A click without a movement does not draw a crop.
      if (width < 1 || height < 1) return this.showPictures();
      const crop = parseStep(`crop:${width}x${height}+${left}+${top}`, this.catalogue);
      const at = this.steps.findLastIndex((step) => this.catalogue.entry(step.name)?.role === "load") + 1;
      this.steps.splice(at, this.firstCrop ? 1 : 0, crop);
    } else {
      let step = this.steps.find((own) => own.name === "thumbnail" && own.slots && !own.isOff);
      if (!step) this.steps.push(step = exampleStep(this.catalogue.entry("thumbnail"), this.catalogue));
      const crop = this.marks.crop ?? { x: 0, y: 0, width: 1, height: 1 };
      const share = (axis, length) =>
        Number(clamped(0, 1, (area[axis] + area[length] / 2 - crop[axis]) / crop[length]).toFixed(3));
      step.slots.forEach((slot, at) => {
        if (slot.key === "focus") step.values[at] = `${share("x", "width")}x${share("y", "height")}`;
        if (slot.key === "gravity") step.values[at] = "";
        if (slot.words.includes("fill")) step.values[at] = "fill";
      });
    }
    this.render();
    this.changed();
    this.showPictures();
  }

  showFailure(error) {
    const place = byID("failure");
    place.hidden = error === null;
    byID("stage").classList.toggle("failed", error !== null);
    this.showStale(error !== null);
    for (const card of document.querySelectorAll(".step.faulty")) card.classList.remove("faulty");
    if (error === null) return place.replaceChildren();
    const isOurs = error instanceof Failure;
    place.replaceChildren(
      h("strong", {}, isOurs ? error.title : "An error occurred in this page"),
      h("p", {}, isOurs ? error.detail ?? "" : String(error)),
      isOurs && error.type ? h("code", {}, `${error.status} ${error.type}`) : "");
    const number = /^step (\d+)/.exec((isOurs && error.detail) || "")?.[1];
    if (number) {
      const on = [...byID("steps").children].filter((_, at) => !this.steps[at].isOff);
      on[number - 1]?.classList.add("faulty");
    }
  }

  /** Dims pictures and figures that do not belong to the current source and recipe. */
  showStale(isStale) {
    for (const id of ["stage", "panels"]) byID(id).classList.toggle("stale", isStale);
  }

  showFacts(against) {
    const { original, variant, reference } = this.pictures;
    const other = against === original ? reference : against;
    const size = (answer) => answer?.size ? `${answer.size.width} × ${answer.size.height}` : "–";
    const format = (answer) => answer?.type.replace("image/", "").replace("+xml", "").split(";")[0] || "–";
    const bytes = (answer) => answer ? bytesText(answer.blob.size) : "–";
    const row = (name, text) => h("tr", {}, h("th", { scope: "row" }, name),
      [original, other, variant].map((answer) => h("td", {}, text(answer))));
    byID("facts").replaceChildren(row("bytes", bytes), row("dimensions", size), row("format", format),
      row("score", (answer) => scoreText(answer?.score)));
    const title = other === reference ? "as PNG" : "kept";
    byID("against-title").textContent = title;
    const base = other ?? original;
    const share = variant.blob.size / base.blob.size;
    const name = base === original ? "the original" : base === reference ? "the same recipe as PNG" : "the kept variant";
    byID("saved").textContent = share <= 1
      ? `${Math.round((1 - share) * 100)} % fewer bytes than ${name}` : `${share.toFixed(1)} times the bytes of ${name}`;
    byID("output-bytes").textContent = [bytesText(variant.blob.size), variant.score && scoreText(variant.score)]
      .filter(Boolean).join(" · ");
    const download = byID("download");
    const stem = stemOf(this.source);
    Object.assign(download, { hidden: false, href: variant.url, download: `${stem}.${format(variant).replace("jpeg", "jpg")}` });
    byID("cache-sentence").textContent = cacheSentence(variant.cacheStatus, variant.place);
    byID("cache-status").textContent = variant.cacheStatus ?? "";
    this.showTimings(variant);
    byID("fields").replaceChildren(...variant.fields.map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  }

  /** Shows one bar for each stage. Each bar begins where the previous one ends. */
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
    const shown = this.pictures.variant?.type.replace("image/", "").replace("+xml", "");
    const name = this.output?.name ?? "auto";
    const endsInPreset = !this.recipe.startsWith(this.stepTexts.join(","));
    const isOpen = (name === "auto" || name === "original") && !endsInPreset;
    this.snippets = snippets({
      base: root.href, recipe: this.recipe, source: this.source,
      publicSource: isSample ? root.href + this.sample.path : this.isOfFolder ? fileOf(this.source) : this.source,
      folder: this.isOfFolder ? this.source.split(":")[0] : null,
      isUnsigned: this.catalogue.unsigned, size: this.pictures.variant?.size, original: this.pictures.original?.size,
      format: name === "auto" || name === "original" ? shown : name,
      closedRecipe: name === "auto" && shown ? this.closedRecipe(shown) : this.recipe,
      formats: ["avif", "webp"].filter((format) => this.catalogue.entry(format)).map((format) => ({
        format, recipe: this.closedRecipe(format, isOpen),
      })),
      fallbackRecipe: isOpen ? this.closedRecipe("original") : this.recipe,
    });
    if (this.snippet === "placeholder") this.showPlaceholder();
    else if (this.snippet === "systems") this.showSystems();
    else byID("snippet").textContent = this.snippets[this.snippet ?? "url"];
  }

  /** Shows placeholders that can be used while the picture loads. Requests them once the picture has been loaded. */
  async showPlaceholder() {
    if (this.snippet !== "placeholder") return;
    const { recipe, source } = this;
    byID("snippet").textContent = "…";
    if (byID("stage").hasAttribute("aria-busy")) return;
    const answers = await Promise.allSettled([
      ask(`info/unsigned/${segment(source)}`).then((answer) => answer.json()),
      ask(variantPath([...this.stepTexts, "thumbnail:16x16", "webp:40"].join(","), source)).then((answer) => answer.arrayBuffer()),
    ]);
    if (this.snippet !== "placeholder" || this.recipe !== recipe || this.source !== source) return;
    const [info, tiny] = answers.map((answer) => answer.value);
    byID("snippet").textContent = this.snippets.placeholder(info, tiny)
      || answers.map((answer) => answer.reason.detail ?? answer.reason.title).join("\n");
  }

  /** Shows the recipe as URLs of the mounted grammars. The server writes them, because some of them need its keys. */
  async showSystems() {
    const { recipe, source } = this;
    const query = new URLSearchParams({ recipe, source }).toString().replaceAll("+", "%20");
    let text = "Choose a picture other than a sample, because other systems do not have the samples.";
    if (this.sample === undefined) {
      byID("snippet").textContent = "…";
      try {
        const urls = await (await ask(`page/urls.json?${query}`, { headers: authorization(), cache: "no-store" })).json();
        text = urls.map(({ system, target, problem }) =>
          `# ${system}${problem ? `: ${problem}` : `\n${root.href.replace(/\/$/, "")}${target}`}`).join("\n\n");
      } catch (failure) {
        text = failure.detail ?? failure.title ?? String(failure);
      }
    }
    if (this.snippet === "systems" && this.recipe === recipe && this.source === source) byID("snippet").textContent = text;
  }

  /** Returns the recipe with an explicit format instead of `auto`, because other programs do not send `Accept`. */
  closedRecipe(format, keepsOptions = true) {
    const given = this.output && keepsOptions ? stepText(this.output).split(":").slice(1) : [];
    const isNumber = (slot, value) => value === "" || slot.words.includes(value) || !Number.isNaN(Number(value));
    const taken = given.filter((argument) => {
      const { slots, values } = parseStep(`${format}:${argument}`, this.catalogue);
      return slots?.every((slot, at) => slot.kind !== "number" || isNumber(slot, values[at]));
    });
    return [...this.stepTexts, [format, ...taken].join(":")].join(",");
  }

  async copy() {
    const text = byID("snippet").textContent;
    const told = byID("copy-state");
    try {
      await navigator.clipboard.writeText(text);
      told.textContent = "Copied.";
    } catch {
      // Without TLS, browsers allow only pages of this machine to write to the clipboard.
      getSelection().selectAllChildren(byID("snippet"));
      told.textContent = "The text is selected. Press Ctrl+C to copy it.";
    }
    setTimeout(() => { told.textContent = ""; }, 2500);
  }
}

async function decoded(answer) {
  answer.url = URL.createObjectURL(answer.blob);
  answer.size = await dimensions(answer.url);
  return answer;
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
  const [answer, accept] = await Promise.all([ask("page/catalogue.json", { headers: authorization() }), acceptedTypes()]);
  new Page(new Catalogue(await answer.json()), accept);
} catch (error) {
  byID("failure").hidden = false;
  byID("failure").replaceChildren(
    h("strong", {}, error.title ?? "The page cannot be loaded"), h("p", {}, error.detail ?? String(error)));
}
