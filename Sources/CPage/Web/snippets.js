// The texts that can be copied. Each of them requests the picture that the page shows.

const htmlText = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
const shellText = (text) => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
const swiftText = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** Encodes a source or recipe as one path segment. Characters that need not be encoded stay readable. */
export const segment = (text) =>
  encodeURIComponent(text).replace(/%(3A|2C|3D|40|2B)/g, (escape) => decodeURIComponent(escape));

/** Returns the decoded path of a file in its folder: `2026/ö b.webp` for `pictures:2026/%C3%B6%20b.webp`. */
export function fileOf(source) {
  const path = source.slice(source.indexOf(":") + 1);
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Returns the name of a source without its folders or extension. */
export const stemOf = (source) =>
  fileOf(`:${source.split(/[?#]/)[0].split(/[/:]/).pop().replace(/\.\w+$/, "")}`).replaceAll("/", "-") || "picture";

export const variantPath = (recipe, source) => `variant/unsigned/${segment(recipe || "auto")}/${segment(source)}`;

/**
 * Returns the recipe for other widths, `[{ width, recipe }]`. A `dpr` before the first thumbnail multiplies all later
 * sizes. The result is empty if the recipe has no thumbnail, or if the picture is too small for it.
 */
export function widths(recipe, size, original) {
  const steps = recipe.split(",").filter(Boolean);
  const at = steps.findIndex((step) => step.startsWith("thumbnail:"));
  const before = steps.slice(0, Math.max(at, 0));
  const crop = /^crop:(\d+)x(\d+)/.exec(before.at(-1) ?? "");
  const input = crop ? { width: Number(crop[1]), height: Number(crop[2]) } : original;
  // Without `up`, a thumbnail never enlarges the picture.
  const most = /:up(:|$)/.test(steps[at] ?? "") ? 8 : Math.min(input?.width / size?.width, input?.height / size?.height);
  if (!size || at < 0 || !(most > 1) || before.some((step) => /^(dpr|rotate|trim|extend|border|scaled|orient|@)/.test(step))) return [];
  return [0.5, 1, 1.5, 2, 3].filter((ratio) => ratio <= most).map((ratio) => ({
    width: Math.round(size.width * ratio),
    recipe: ratio === 1 ? recipe : [...before, `dpr:${ratio}`, ...steps.slice(at)].join(","),
  }));
}

/**
 * @param base the URL at which the site is mounted
 * @param recipe the recipe text, which may be empty
 * @param source the source as in a path of this server: a URL or `sample:NAME`
 * @param publicSource the source for programs on other machines: a URL, or the path of a file in `folder`
 * @param folder the server's name of the folder that contains the file, or null if the source is not in a folder
 * @param size the size of the variant if it is known
 * @param format the format that is shown if it is known
 * @param closedRecipe the recipe for programs, which always returns the format that is shown
 * @param formats `[{ format, recipe }]` for `<picture>`, best first
 * @param fallbackRecipe the recipe for browsers that support none of these formats
 * @param isUnsigned whether the server accepts URLs without a signature. If false, the URL is replaced with the command
 *   that signs it.
 */
export function snippets({
  base, recipe, source, publicSource, folder, size, original, format, closedRecipe, formats, fallbackRecipe, isUnsigned,
}) {
  const url = (text) => base + variantPath(text, source);
  const isPrivate = /^https?:\/\/(127\.|localhost|\[::1\])/.test(publicSource);
  const extension = format === "jpeg" ? "jpg" : format || "img";
  const sizes = size ? `sizes="(max-width: ${size.width}px) 100vw, ${size.width}px"` : "";
  /** Returns `srcset` and `sizes` for all widths of a recipe, or the result of `alone` if there are no other widths. */
  const set = (text, gap, alone = () => "") => {
    const all = widths(text, size, original);
    const texts = all.map((own) => `${htmlText(url(own.recipe))} ${own.width}w`);
    return all.length > 0 ? `srcset="${texts.join(`,\n${" ".repeat(gap + 8)}`)}"\n${" ".repeat(gap)}${sizes}` : alone(htmlText(url(text)));
  };
  const image = (text, style = "") => `<img src="${htmlText(url(text))}"${attributes} alt=""${style}>`;
  const sign = `pipectl sign variant ${shellText(recipe || "auto")} ${shellText(source)}`;
  const attributes = size ? ` width="${size.width}" height="${size.height}"` : "";
  return {
    url: isUnsigned ? url(recipe) : sign,
    html: [
      "<img", `  src="${htmlText(url(recipe))}"`,
      set(recipe, 2) && `  ${set(recipe, 2)}`, ` ${attributes} alt="" loading="lazy">`,
    ].filter(Boolean).join("\n"),
    picture: [
      "<picture>",
      ...formats.map((own) =>
        `  <source type="image/${own.format}"\n    ${set(own.recipe, 4, (only) => `srcset="${only}"`)}>`),
      `  ${image(fallbackRecipe, ' loading="lazy"')}`, "</picture>",
    ].join("\n"),
    /** Uses the response of `/info` and the bytes of a tiny WebP. Each is undefined if the server did not send it. */
    placeholder: (info, tiny) => [
      info?.averageColour && ["the average colour", ` style="background: #${info.averageColour}"`],
      tiny && ["a tiny picture", ` style="background: center / cover url(data:image/webp;base64,${
        btoa(String.fromCharCode(...new Uint8Array(tiny)))})"`],
      info?.thumbhash && ["a ThumbHash, which a script draws", ` data-thumbhash="${info.thumbhash}"`],
    ].filter(Boolean).map(([title, attribute]) => `<!-- ${title} -->\n${image(recipe, attribute)}`).join("\n\n"),
    pipectl: [
      `${folder ? `# in the folder that this server calls ${folder}\n` : ""}pipectl get ${shellText(publicSource)}`, closedRecipe && `-r ${shellText(closedRecipe)}`,
      isPrivate && "--set allowPrivateAddresses=true", `-o ${shellText(`${stemOf(source)}.${extension}`)}`,
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
