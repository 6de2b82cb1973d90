// Measures the difference between a variant and the same picture in lossless form. Both measures use the pixels that
// the browser shows (8-bit sRGB values, composited onto white). They are suitable for comparing settings of one
// encoder, and less suitable for comparing formats.
//
// PSNR is computed over red, green and blue. SSIM (Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from
// error visibility to structural similarity", IEEE Transactions on Image Processing 13 (2004), equation 13) is the mean
// over blocks of 8 × 8 luma values (BT.709), whereas the paper uses a sliding Gaussian window of 11 × 11.

/** The maximum number of pixels. Larger pictures are not compared, because that would block the page. */
const MOST = 16_000_000;
const BLOCK = 8;
const C1 = (0.01 * 255) ** 2;
const C2 = (0.03 * 255) ** 2;

/** Returns `{ psnr, ssim }` of two pictures `{ url, size }`, or null if their sizes differ or are too large. */
export async function score(one, other) {
  const { width, height } = one.size ?? {};
  if (!width || width * height > MOST || other.size?.width !== width || other.size?.height !== height) return null;
  return compared(...await Promise.all([one, other].map(pixels)), width, height);
}

async function pixels({ url, size: { width, height } }) {
  const image = new Image();
  image.src = url;
  await image.decode();
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, width, height).data;
}

/** Returns `{ psnr, ssim }` of two pictures that consist of opaque RGBA bytes. */
export function compared(one, other, width, height) {
  let [squares, similarity, blocks] = [0, 0, 0];
  for (let at = 0; at < one.length; at += 1) squares += (one[at] - other[at]) ** 2;
  for (let top = 0; top < height; top += BLOCK) {
    for (let left = 0; left < width; left += BLOCK, blocks += 1) similarity += block(one, other, width, height, left, top);
  }
  return { psnr: 10 * Math.log10(255 ** 2 / (squares / (width * height * 3))), ssim: similarity / blocks };
}

function block(one, other, width, height, left, top) {
  let [a, b, aa, bb, ab, count] = [0, 0, 0, 0, 0, 0];
  for (let y = top; y < Math.min(height, top + BLOCK); y += 1) {
    for (let x = left; x < Math.min(width, left + BLOCK); x += 1, count += 1) {
      const p = luma(one, (y * width + x) * 4);
      const q = luma(other, (y * width + x) * 4);
      a += p; b += q; aa += p * p; bb += q * q; ab += p * q;
    }
  }
  [a, b, aa, bb, ab] = [a, b, aa, bb, ab].map((sum) => sum / count);
  return ((2 * a * b + C1) * (2 * (ab - a * b) + C2)) / ((a * a + b * b + C1) * (aa - a * a + bb - b * b + C2));
}

const luma = (data, at) => 0.2126 * data[at] + 0.7152 * data[at + 1] + 0.0722 * data[at + 2];

export const scoreText = (found) =>
  !found ? "–" : found.psnr === Infinity ? "identical" : `${found.psnr.toFixed(1)} dB · ${found.ssim.toFixed(3)}`;
