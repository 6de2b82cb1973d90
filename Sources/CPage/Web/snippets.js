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
 * @param format the one that is shown, if it is known
 * @param closedRecipe the recipe for programs, which get the format that is shown; browsers choose theirs
 * @param isUnsigned whether the server answers URLs without a signature; else the command that signs one stands for it
 */
export function snippets({ base, recipe, source, publicSource, size, format, closedRecipe, isUnsigned }) {
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
