// The controls of a step, with one control for each slot of its grammar (`grammar.js`).
import { root } from "./answer.js";
import { freshID, h } from "./dom.js";
import { variantPath } from "./snippets.js";

/** Returns the controls of a step. Calls `changed` after each change of `step.values`. */
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

  /** A field for a name, and a button for each available picture, which shows the picture applied to a sample. */
  pictures(slot, value, set) {
    const field = controls.text(slot, value, (name) => choose(name));
    const input = field.querySelector("input");
    const buttons = slot.names.map((name) => h("button", {
      type: "button", "aria-pressed": String(name === value), title: name,
      onclick: () => {
        input.value = name;
        choose(name);
      },
    }, h("img", {
      src: new URL(variantPath(`thumbnail:96x64:fill,${slot.token}:${name},png`, "sample:meadow"), root).href,
      alt: "", loading: "lazy", onerror: (event) => event.target.remove(),
    }), name));
    function choose(name) {
      slot.names.forEach((own, at) => buttons[at].setAttribute("aria-pressed", String(own === name)));
      set(name);
    }
    field.classList.add("wide");
    if (buttons.length > 0) field.append(h("div", { class: "pictures", role: "group", "aria-label": `${slot.token}s` }, buttons));
    return field;
  },

  bytes(slot, value, set, title) {
    return /^([\d.]+kB)?$/.test(value) ? numeric(slot, value, set, title, null, "kB") : controls.text(slot, value, set);
  },

  /** Fields for numbers with separators, such as `300x200`, `0.5x0.3` and `640x480+10+20`. */
  parts(slot, value, set, title) {
    // Percentages, as in `3pctx3pct`, cannot be edited as numbers.
    if (/[^\d.x+-]/.test(value)) return controls.text(slot, value, set);
    const numbers = value.split(/[x+]/);
    // `300` means a square.
    if (slot.label === "size" && value !== "" && !value.includes("x")) numbers.push(numbers[0]);
    const inputs = slot.parts.map((part, index) => typeof part === "string" ? part : h("input", {
      type: "number", value: numbers[index / 2] ?? "", placeholder: part.letter, min: part.min, max: part.max,
      step: part.max <= 1 ? 0.05 : 1, "aria-label": `${title} ${part.label}`, inputMode: "decimal",
      oninput: () => set(text()),
    }));
    function text() {
      const given = inputs.filter((input) => typeof input !== "string");
      if (given.every((input) => input.value === "")) return "";
      // The optional numbers are either all present or all missing.
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

/** A field for a number, with a slider, and with words (`lossless`) or a unit (`pct`) if the slot accepts them. */
function numeric(slot, value, set, title, unit, suffix = "") {
  const isShare = unit !== null && value.endsWith(unit);
  const number = slot.words.includes(value) ? "" : value.replace(/(pct|%|kB)$/, "");
  const increment = slot.max - slot.min <= 10 ? 0.05 : slot.min % 1 !== 0 ? 0.1 : 1;
  return labelled(suffix ? `${slot.label} (${suffix})` : slot.label, (id) => {
    const units = unit && h("select", {
      "aria-label": `${title}, unit`,
      onchange: () => {
        slider.max = top();
        tell();
      },
    }, h("option", { value: "" }, slot.unit), h("option", { value: unit, selected: isShare }, "%"));
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
      placeholder: suffix ? slot.initial : Number.isNaN(Number(slot.initial)) ? "auto" : slot.initial,
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
      set(input.value === "" ? "" : input.value + (units ? units.value : suffix));
    }
    return h("div", { class: "row number" }, slider, input, units, word);
  }, "wide");
}

/** Returns the maximum of a slider. Ranges also include rare values, but sliders cover only common values. */
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
