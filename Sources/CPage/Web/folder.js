// The server's folders. Their pictures are shown as thumbnails, each of which is a link that opens the picture.
import { ask, root } from "./answer.js";
import { authorization } from "./cache.js";
import { byID, h, icon } from "./dom.js";
import { variantPath } from "./snippets.js";

const THUMBNAIL = "thumbnail:240x240,auto";
/** Thumbnails are requested only for files with these names. */
const PICTURE = /(^[^.]+|\.(jpe?g|jfif|png|apng|gif|webp|avif|jxl|hei[cf]|hif|tiff?|bmp|dib|ico|cur|svg))$/i;

/** Returns the fragment for a folder, which is `NAME:PATH`. */
export const folderLink = (folder) => `#folder=${encodeURIComponent(folder)}`;
/** Returns the folder that a fragment names, or null if it does not name a folder. */
export const folderOf = (hash) => hash.startsWith("#folder=") ? decodeURIComponent(hash.slice(8)) : null;

export class FolderView {
  constructor(catalogue) {
    this.catalogue = catalogue;
    byID("folder-more").addEventListener("click", () => this.load());
  }

  /** @param recipe the recipe with which the pictures are opened */
  show(folder, recipe) {
    Object.assign(this, { folder, recipe, after: "" });
    byID("folder-entries").replaceChildren();
    byID("folder-link").href = folderLink(folder);
    byID("folder-path").replaceChildren(...this.crumbs());
    return this.load();
  }

  /** Returns links to the parent folders and to the server's other folders. */
  crumbs() {
    const [name, path] = [this.folder.split(":")[0], this.folder.slice(this.folder.indexOf(":") + 1)];
    const parts = path.split("/").filter(Boolean);
    const others = this.catalogue.folders.filter((other) => other !== name);
    return [
      h("a", { href: folderLink(`${name}:`) }, name),
      ...parts.map((part, at) =>
        h("a", { href: folderLink(`${name}:${parts.slice(0, at + 1).join("/")}`) }, readable(part))),
      ...others.map((other) => h("a", { href: folderLink(`${other}:`), class: "other" }, other)),
    ];
  }

  async load() {
    const { folder } = this;
    const more = byID("folder-more");
    more.disabled = true;
    try {
      const query = new URLSearchParams({ folder, after: this.after });
      // Encode spaces as %20, because the server does not decode plus signs.
      const path = `page/folder.json?${String(query).replaceAll("+", "%20")}`;
      const page = await (await ask(path, { headers: authorization(), cache: "no-store" })).json();
      if (folder !== this.folder) return;
      this.after = page.after ?? "";
      byID("folder-entries").append(...page.entries.map((entry) => h("li", {}, this.tile(entry))));
      byID("folder-empty").hidden = byID("folder-entries").children.length > 0;
      more.hidden = page.after === undefined;
      byID("folder-error").hidden = true;
    } catch (error) {
      if (folder !== this.folder) return;
      more.hidden = true;
      byID("folder-empty").hidden = true;
      byID("folder-error").hidden = false;
      byID("folder-error").replaceChildren(
        h("strong", {}, error.title ?? "The folder cannot be shown"), h("p", {}, error.detail ?? String(error)));
    } finally {
      more.disabled = false;
    }
  }

  tile({ name, source, isFolder }) {
    const tile = (href, ...frame) =>
      h("a", { class: "tile", title: name, href }, h("div", { class: "frame soft" }, frame), name);
    if (isFolder) return tile(folderLink(source), icon("folder"));
    const href = `#${new URLSearchParams({ source, recipe: this.recipe })}`;
    const kind = name.includes(".") ? name.split(".").at(-1).toUpperCase() : "";
    if (!PICTURE.test(name)) return tile(href, note(kind, "not a picture"));
    if (!this.catalogue.unsigned) return tile(href, note(kind, ""));
    const image = h("img", { alt: "", loading: "lazy", onerror: () => explain(image, source, kind) });
    image.src = new URL(variantPath(THUMBNAIL, source), root).href;
    return tile(href, image);
  }
}

const note = (kind, text) => h("p", { class: "kind" }, h("strong", {}, kind), h("span", {}, text));

/** Replaces a thumbnail that cannot be loaded with the reason. */
async function explain(image, source, kind) {
  let [text, detail] = ["no thumbnail", ""];
  try {
    await ask(variantPath(THUMBNAIL, source));
  } catch (error) {
    detail = error.detail ?? error.title;
    const isForeign = /not an image/.test(detail);
    const problem = error.type?.split(":").at(-1);
    text = { "not-an-image": isForeign ? "not a picture" : "format not supported", undecodable: "damaged" }[problem] ?? error.title;
  }
  image.closest(".tile").title = detail;
  image.replaceWith(note(kind, text));
}

/** Returns a decoded part of a path for display. If its bytes are not UTF-8, the part stays encoded. */
function readable(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
