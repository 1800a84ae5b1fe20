"""Develop a photograph in plain NumPy: linearise, white balance, unsharp mask, tone curve, vignette, statistics.

Reads the photograph that ships with scikit-learn, writes `out/before.png` and `out/after.png`.
"""

import numpy as np
from common import OUT, compare
from PIL import Image
from sklearn.datasets import load_sample_image


def develop(image, sharpness, vignette):
    """A finished picture and its luminance statistics.

    image: uint8[h, w, 3] in sRGB. Returns uint8[h, w, 3] and (mean, std, min, max) of the linear luminance.
    """
    h, w = image.shape[0], image.shape[1]
    x = image.astype(np.float32) / 255
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)

    means = linear.mean(axis=(0, 1))  # grey world: every channel gets the same mean
    linear = linear * (means.mean() / means)

    blurred = linear.copy()
    blurred[1:-1, 1:-1] = (
        4 * linear[1:-1, 1:-1]
        + 2 * (linear[:-2, 1:-1] + linear[2:, 1:-1] + linear[1:-1, :-2] + linear[1:-1, 2:])
        + (linear[:-2, :-2] + linear[:-2, 2:] + linear[2:, :-2] + linear[2:, 2:])
    ) / 16
    sharp = np.maximum(linear + sharpness * (linear - blurred), 0)

    tone = np.minimum(sharp * (2.51 * sharp + 0.03) / (sharp * (2.43 * sharp + 0.59) + 0.14), 1)

    y = (np.arange(h, dtype=np.float32) - h / 2) / h
    z = (np.arange(w, dtype=np.float32) - w / 2) / w
    falloff = 1 - vignette * (y[:, np.newaxis] ** 2 + z**2)
    tone = tone * falloff[:, :, np.newaxis]

    luminance = 0.2126 * tone[:, :, 0] + 0.7152 * tone[:, :, 1] + 0.0722 * tone[:, :, 2]
    statistics = (luminance.mean(), luminance.std(), luminance.min(), luminance.max())
    encoded = np.where(tone <= 0.0031308, 12.92 * tone, 1.055 * tone ** (1 / 2.4) - 0.055)
    return (255 * encoded + 0.5).astype(np.uint8), statistics


def main():
    image = load_sample_image("china.jpg")
    (eager, _), (compiled, statistics) = compare(
        f"image pipeline, {image.shape[0]} x {image.shape[1]} photograph",
        develop,
        (image, 0.8, 0.9),
        tolerance=1.5 / 255,
    )
    off = np.count_nonzero(eager != compiled)
    print(f"pixels that differ from NumPy by one level: {off} of {eager.size}")
    print("luminance: mean {:.4f}, std {:.4f}, min {:.4f}, max {:.4f}".format(*statistics))
    OUT.mkdir(exist_ok=True)
    Image.fromarray(image).save(OUT / "before.png")
    Image.fromarray(compiled).save(OUT / "after.png")
    print(f"wrote {OUT.name}/before.png and {OUT.name}/after.png")


if __name__ == "__main__":
    main()
