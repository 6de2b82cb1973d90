// Converts the grammar of a catalogue entry to the slots of a form, and converts between the text of a step and the
// values of these slots.
//
//     thumbnail:SIZE[:fit|fill|pad|stretch][:up][:gravity=G]
//
// A slot is one argument, or several that are present together (`[:R:R:R]`). Numbers and words in lower case are
// literal. A word in upper case is a placeholder for a value, whose range is in the entry's `ranges`: "S 0.3…100 (1)"
// means 0.3 to 100, with a default of 1. If the grammar does not explain a step, the step is edited as text.

const WORD = /^[a-z0-9-]+$/;

/** Returns the slots of an entry. */
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
  const known = entry.words?.[key ?? placeholder];
  const base = { key, isRequired, words, placeholder, count: 1 };
  if (!placeholder) {
    const kind = words.length > 1 || key ? "choice" : isRequired ? "constant" : "flag";
    return { ...base, kind, label: key ?? (kind === "choice" ? "mode" : words[0]) };
  }
  const count = placeholder.split(":").length;
  if (count > 1) return { ...base, kind: "text", count, label: `the other ${count}`, hint: placeholder };
  if (placeholder === "LIST" && known) return { ...base, kind: "list", words: known, label: key };
  if (known && !key) return { ...base, kind: "pictures", words: [], names: known, label: "name", token: entry.name };
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
  const name = range(key ?? placeholder, entry.ranges) ? key ?? placeholder : placeholder;
  const limits = range(name, entry.ranges);
  const label = key ?? names[placeholder] ?? entry.name;
  if (limits) {
    const clause = entry.ranges.split(";").find((text) => range(name, text)) ?? "";
    const takesShare = clause.includes("…100 `pct`");
    return { ...base, kind: takesShare ? "length" : "number", label, unit: clause.includes(" px") ? "px" : "×", ...limits };
  }
  if (placeholder === "SIZE") return { ...base, kind: "bytes", label, hint: "20kB", min: 1, max: 100_000, initial: "none" };
  return { ...base, kind: "text", label, hint: placeholder };
}

const names = {
  NAME: "name", DEG: "degrees", Q: "quality", R: "radius", T: "amount", S: "strength", F: "factor",
};

/** Returns the numbers and separators of `WxH`, `XxY` or `WxH[+X+Y]`, or null if the text has a different form. */
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

/** Returns the range of a name, `{ min, max, initial }`, or null if `ranges` does not contain the name. */
export function range(name, ranges) {
  const number = "(-?[0-9]+(?:\\.[0-9]+)?)";
  const pattern = new RegExp(
    `(?:^|[^A-Za-z])${name}(?:, [A-Z])* ${number}…${number}(?:[^;,.(]*\\(([^)]*)\\))?`);
  const match = pattern.exec(ranges) ?? (name === "T" ? new RegExp(`^${number}…${number}()`).exec(ranges) : null);
  if (!match) return null;
  return { min: Number(match[1]), max: Number(match[2]), initial: match[3] || undefined };
}

/** Parses the steps of a recipe. */
export function parseRecipe(text, catalogue) {
  return text.split(",").map((step) => step.trim()).filter(Boolean).map((step) => parseStep(step, catalogue));
}

/** Parses a step. Returns `{ name, entry, slots, values }`, or `{ name, text }` if the grammar does not explain it. */
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

/** Returns the step that the form begins with, which is the example in the catalogue. */
export function exampleStep(entry, catalogue) {
  const own = entry.example.split(",").find((step) => step.split(":")[0] === entry.name);
  return parseStep(own ?? entry.name, catalogue);
}

/** The server's catalogue. */
export class Catalogue {
  constructor(json) {
    // The server lists its folders and grammars only for operators.
    Object.assign(this, { folders: [], systems: [] }, json);
    this.byName = new Map(json.entries.map((entry) => [entry.name, entry]));
    for (const preset of json.presets) {
      const name = `@${preset.name}`;
      this.byName.set(name, {
        name, role: "preset", grammar: name, summary: `Stands for ${preset.recipe}.`, ranges: "", example: name,
      });
    }
  }

  preset(name) {
    return this.presets.find((preset) => preset.name === name)?.recipe;
  }

  entry(name) {
    return this.byName.get(name);
  }

  ofRole(...roles) {
    return [...this.byName.values()].filter((entry) => roles.includes(entry.role));
  }
}
