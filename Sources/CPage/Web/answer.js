// Requests to the server, and functions that interpret the header fields of its responses.

/** A failed request, with the members of `application/problem+json` if the server sent them. */
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

/** The URL at which the site is mounted. This file is at `page/VERSION/answer.js` below it. */
export const root = new URL("../../", import.meta.url);

/** Fetches a path below the mount point. Throws a `Failure` if the request does not succeed. */
export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(new URL(path, root), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("The server cannot be reached", "Check that it is still running.");
  }
  if (!response.ok) throw await Failure.of(response);
  return response;
}

/** Loads a picture from the server. The browser's cache is not used, because the page shows the request's times. */
export async function picture(path, options) {
  const began = performance.now();
  const response = await ask(path, { ...options, cache: "no-store" });
  const blob = await response.blob();
  return {
    blob, status: response.status, type: response.headers.get("content-type") ?? "", fields: [...response.headers],
    seconds: (performance.now() - began) / 1000, cacheStatus: response.headers.get("cache-status"),
    timings: serverTimings(response.headers.get("server-timing") ?? ""),
  };
}

/** Returns the width and height of a picture, or null if this browser cannot decode the format. */
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

/** Returns the entries of `Server-Timing`: `[{ name, title, milliseconds }]`. */
export function serverTimings(text) {
  return [...text.matchAll(/([\w-]+)((?:\s*;\s*[\w-]+=(?:"[^"]*"|[^;,]*))*)/g)].map(([, name, rest]) => {
    const parameters = Object.fromEntries(
      [...rest.matchAll(/([\w-]+)=(?:"([^"]*)"|([^;,]*))/g)].map(([, key, quoted, plain]) => [key, quoted ?? plain]));
    return { name, title: parameters.desc ?? "", milliseconds: Number(parameters.dur ?? 0) };
  });
}

/**
 * Returns a sentence that explains `Cache-Status` (RFC 9211).
 *
 * @param place `sample` if the source is one of the server's samples, or `folder` if it is a file in one of its
 *   folders. In both cases, no origin is contacted, and the entry does not expire.
 */
export function cacheSentence(text, place) {
  if (!text) return "The response has no Cache-Status.";
  const parameters = Object.fromEntries(
    text.split(";").slice(1).map((part) => part.trim().split("=")).map(([key, value]) => [key, value ?? true]));
  const fresh = parameters.ttl === undefined || place ? ""
    : Number(parameters.ttl) >= 0 ? `, fresh for ${parameters.ttl} s` : ", no longer fresh";
  const words = typeof parameters.detail === "string" ? parameters.detail.split("/") : [];
  const pass = { "first-pass": " A second pass may make it smaller.", "second-pass": " A second pass has finished." };
  const tier = words.find((word) => !(word in pass));
  const version = pass[words.at(-1)] ?? "";
  if (parameters.hit) {
    const detail = { memory: "memory", disk: "the disk", remote: "the bucket", rendered: "a stored original" }[tier];
    if (tier === "rendered" && place === "sample") return "Rendered from the server's own sample.";
    if (tier === "rendered" && place === "folder") return "Rendered from the file in this folder." + version;
    if (detail && place === "folder") return `Hit: served from ${detail}; the file in this folder has not changed.${version}`;
    if (tier === "rendered") return `The original was cached, and the variant was rendered${fresh}.${version}`;
    return `Hit: served from ${detail ?? tier ?? "the cache"}${fresh}.${version}`;
  }
  const reasons = {
    "uri-miss": "Miss: the origin was contacted", stale: "The stored original was stale, so the origin was contacted",
    "vary-miss": "Miss: no stored response matches the request (Vary)", bypass: "The cache was bypassed",
    request: "The request required a new response", method: "Requests with this method go to the origin",
  };
  return [
    reasons[parameters.fwd] ?? "The origin was contacted", parameters.collapsed && ", together with other requests",
    parameters.stored && ", and the response was stored", fresh, ".", version,
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

/** Returns a value of `Accept` with the media types that this browser decodes. `fetch` does not send them itself. */
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
