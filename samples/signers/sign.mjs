// Prints a signed path: node sign.mjs KEYID EXPIRY|- variant RECIPE SOURCE | original SOURCE | info SOURCE
// The key comes in hexadecimal digits from the environment variable KEY.
import { createHmac } from "node:crypto";
import { pathToFileURL } from "node:url";

const encoded = (text) =>
  encodeURIComponent(text)
    .replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase())
    .replace(/%(3A|2C|3D|40)/g, decodeURIComponent);

export function signedPath(keyID, key, route, segments, expiry) {
  const rest = segments.map((s) => "/" + encoded(s)).join("") + (expiry === undefined ? "" : `?exp=${expiry}`);
  const code = createHmac("sha256", key).update(`/${route}${rest}`).digest("base64url");
  return `/${route}/${keyID}.${code}${rest}`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [keyID, expiry, route, ...segments] = process.argv.slice(2);
  const key = Buffer.from(process.env.KEY, "hex");
  console.log(signedPath(keyID, key, route, segments, expiry === "-" ? undefined : Number(expiry)));
}
