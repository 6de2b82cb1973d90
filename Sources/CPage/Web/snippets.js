// What can be copied: each of these asks for the picture that the page shows.

const htmlText = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
const shellText = (text) => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
const swiftText = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** A source or recipe as one path segment; what may be raw there stays readable. */
export const segment = (text) =>
  encodeURIComponent(text).replace(/%(3A|2C|3D|40|2B)/g, (escape) => decodeURIComponent(escape));

export const variantPath = (recipe, source) => `variant/unsigned/${segment(recipe || "auto")}/${segment(source)}`;

/**
 * The recipe in other widths, `[{ width, recipe }]`: `dpr` before the first thumbnail multiplies all sizes after it. Empty if
 * the recipe has no thumbnail, or one that the picture is too small for.
 */
export function widths(recipe, size, original) {
  const steps = recipe.split(",").filter(Boolean);
  const at = steps.findIndex((step) => step.startsWith("thumbnail:"));
  const before = steps.slice(0, Math.max(at, 0));
  const crop = /^crop:(\d+)x(\d+)/.exec(before.at(-1) ?? "");
  const input = crop ? { width: Number(crop[1]), height: Number(crop[2]) } : original;
  // Without `up` a thumbnail never enlarges.
  const most = /:up(:|$)/.test(steps[at] ?? "") ? 8 : Math.min(input?.width / size?.width, input?.height / size?.height);
  if (!size || at < 0 || !(most > 1) || before.some((step) => /^(dpr|rotate|trim|extend|border|scaled|orient|@)/.test(step))) return [];
  return [0.5, 1, 1.5, 2, 3].filter((ratio) => ratio <= most).map((ratio) => ({
    width: Math.round(size.width * ratio),
    recipe: ratio === 1 ? recipe : [...before, `dpr:${ratio}`, ...steps.slice(at)].join(","),
  }));
}

/**
 * @param base where the site is mounted
 * @param recipe text; may be empty
 * @param source as in a path of this server: a URL or `sample:NAME`
 * @param publicSource the same for programs elsewhere: a URL
 * @param size the variant's, if it is known
 * @param format the one that is shown, if it is known
 * @param closedRecipe the recipe for programs, which get the format that is shown; browsers choose theirs
 * @param isUnsigned whether the server answers URLs without a signature; else the command that signs one stands for it
 */
export function snippets({ base, recipe, source, publicSource, size, original, format, closedRecipe, isUnsigned }) {
  const url = (text) => base + variantPath(text, source);
  const name = (source.split(/[?#]/)[0].split(/[/:]/).pop() || "picture").replace(/\.\w+$/, "");
  const isPrivate = /^https?:\/\/(127\.|localhost|\[::1\])/.test(publicSource);
  const extension = format === "jpeg" ? "jpg" : format || "img";
  const set = widths(recipe, size, original);
  const sign = `pipectl sign variant ${shellText(recipe || "auto")} ${shellText(source)}`;
  const attributes = size ? ` width="${size.width}" height="${size.height}"` : "";
  return {
    url: isUnsigned ? url(recipe) : sign,
    html: [
      "<img", `  src="${htmlText(url(recipe))}"`,
      set.length > 0 && `  srcset="${set.map((own) => `${htmlText(url(own.recipe))} ${own.width}w`).join(",\n          ")}"\n`
        + `  sizes="(max-width: ${size.width}px) 100vw, ${size.width}px"`,
      ` ${attributes} alt="" loading="lazy">`,
    ].filter(Boolean).join("\n"),
    pipectl: [
      `pipectl get ${shellText(publicSource)}`, closedRecipe && `-r ${shellText(closedRecipe)}`,
      isPrivate && "--set allowPrivateAddresses=true", `-o ${shellText(`${name}.${extension}`)}`,
    ].filter(Boolean).join(" \\\n    "),
    swift: [
      "import Pipeline", "",
      isPrivate
        ? "var configuration = PipelineConfiguration()\nconfiguration.fetch.allowPrivateAddresses = .all\n"
          + "let pipeline = try ImagePipeline(configuration)"
        : "let pipeline = try ImagePipeline()",
      `let image = try await pipeline.image(\n    for: ${swiftText(publicSource)},`,
      `    recipe: ${swiftText(closedRecipe || "auto")})`,
      "print(image.width, image.height, image.bytes.count)", "await pipeline.shutdown()",
    ].join("\n"),
  };
}
