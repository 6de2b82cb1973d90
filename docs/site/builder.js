// The URL builder: paths of `pipectl serve` and their signatures, as docs/signing.md describes them. `catalogue` (catalogue.js) is
// the table of docs/recipes.md: {name, grammar, summary, ranges, example, isOutput} of each step. Nothing is sent or stored.
"use strict";

function encodedSegment(text) {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase())
    .replace(/%(3A|2C|3D|40)/g, decodeURIComponent);
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

// The path of segments; `key` is {id, hex}, or null for an unsigned one.
async function signedPath(key, route, segments, expiry) {
  const rest = segments.map((s) => "/" + encodedSegment(s)).join("") + (expiry === null ? "" : `?exp=${expiry}`);
  if (!key) return `/${route}/unsigned${rest}`;
  const bytes = Uint8Array.from(key.hex.match(/../g), (digits) => parseInt(digits, 16));
  const imported = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const code = await crypto.subtle.sign("HMAC", imported, new TextEncoder().encode(`/${route}${rest}`));
  return `/${route}/${key.id}.${base64url(new Uint8Array(code))}${rest}`;
}

// Unix seconds of `1h`, `7d` or digits; null for none, undefined for anything else.
function expirySeconds(text, now) {
  if (text === "") return null;
  const parts = /^(\d{1,10})([smhd]?)$/.exec(text);
  if (!parts) return undefined;
  const unit = { s: 1, m: 60, h: 3600, d: 86400 }[parts[2]];
  return unit ? Math.floor(now / 1000) + Number(parts[1]) * unit : Number(parts[1]);
}

// Edits from one word to the other.
function distance(a, b) {
  let row = [...b, ""].map((_, i) => i);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      next.push(Math.min(row[j + 1] + 1, next[j] + 1, row[j] + (a[i] === b[j] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

// What is wrong with the names of a recipe's steps; their arguments are the server's to check.
function recipeProblem(recipe) {
  const steps = recipe.split(",");
  if (steps.length > 32) return "A recipe can have at most 32 steps.";
  for (const [index, text] of steps.entries()) {
    const name = text.split(":")[0];
    if (/^@[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(text)) continue;
    const step = catalogue.find((s) => s.name === name);
    if (!step) {
      const nearest = catalogue.map((s) => s.name).sort((a, b) => distance(name, a) - distance(name, b))[0];
      return `Step ${index + 1}, “${text}”: unknown step. Did you mean “${nearest}”?`;
    }
    if (step.isOutput && index < steps.length - 1) return `Step ${index + 1}, “${text}”: the output must be the last step.`;
  }
  return "";
}

function startBuilder(form) {
  const field = (name) => form.elements[name].value.trim();
  const show = (id, text) => (document.getElementById(id).textContent = text);
  for (const step of catalogue) {
    form.elements[step.isOutput ? "output" : "add"].add(new Option(step.name, step.isOutput ? step.name : step.example));
  }

  let latest = 0;
  async function update() {
    const turn = ++latest;
    const route = field("route");
    document.getElementById("variant").hidden = route !== "variant";
    const output = field("output") + (field("output") && field("arguments") ? ":" + field("arguments") : "");
    const recipe = [field("steps"), output].filter((part) => part).join(",");
    const source = form.elements.base64.checked
      ? "b64:" + base64url(new TextEncoder().encode(field("source")))
      : field("source");
    const key = field("keyID") || field("key") ? { id: field("keyID"), hex: field("key") } : null;
    const expiry = expirySeconds(field("expiry"), Date.now());

    let problem = "";
    if (route === "variant" && recipe) problem = recipeProblem(recipe);
    if (!field("source")) problem = "The source is missing.";
    if (key && !/^[A-Za-z0-9_-]{1,32}$/.test(key.id)) problem = "The name of a key must consist of 1 to 32 letters, digits, - or _.";
    else if (key && !/^([0-9a-fA-F]{2}){16,}$/.test(key.hex)) problem = "A key must have at least 32 hexadecimal digits, and an even number of them.";
    else if (key && !globalThis.crypto?.subtle) problem = "Browsers can sign only on pages from https or localhost.";
    if (expiry === undefined) problem = "The expiry must be a duration such as 90s, 15m, 1h or 7d, or a time in Unix seconds.";
    else if (expiry !== null && !key) problem = "An expiry requires a key, because only signed paths expire.";

    const url = async (text) => {
      const segments = route === "variant" ? [text || "auto", source] : [source];
      return field("base").replace(/\/+$/, "") + (await signedPath(key, route, segments, expiry));
    };
    const urls = problem ? [] : await Promise.all(["", "dpr:2,", "dpr:3,"].map((dpr) => url(dpr + recipe)));
    if (turn !== latest) return;
    show("problems", problem);
    document.getElementById("result").classList.toggle("wrong", problem !== "");
    const steps = route === "variant" ? recipe.split(",").map((text) => text.split(":")[0]) : [];
    document.getElementById("explained").replaceChildren(
      ...catalogue.filter((step) => steps.includes(step.name)).map((step) => {
        const item = document.createElement("li");
        const grammar = document.createElement("code");
        grammar.textContent = step.grammar;
        item.append(grammar, ` ${step.summary} ${step.ranges}`.replaceAll("`", ""));
        return item;
      }));
    const escaped = urls.map((text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;"));
    show("url", urls[0] ?? "");
    const isPicture = route === "variant" && urls.length && recipe;
    const densities = escaped.map((text, i) => `${text} ${i + 1}x`).join(",\n             ");
    show("tag", isPicture ? `<img src="${escaped[0]}"\n     srcset="${densities}" alt="">`
      : urls.length && route !== "info" ? `<img src="${escaped[0]}" alt="">` : "");
    show("command", urls.length ? `curl --fail '${urls[0].replaceAll("'", "%27")}' -o picture` : "");
  }

  form.elements.add.addEventListener("change", (event) => {
    if (!event.target.value) return;
    form.elements.steps.value = [field("steps"), event.target.value].filter((part) => part).join(",");
    event.target.value = "";
    update();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", update);
  update();
}

if (typeof document !== "undefined") startBuilder(document.getElementById("builder"));
