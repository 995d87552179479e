// Reduces screenshots to the mean colors of square blocks, and compares such pictures.
({
  columns: 32,
  async pixels(png) {
    const bitmap = await createImageBitmap(new Blob([new Uint8Array(png)]));
    const { width, height } = bitmap;
    const context = new OffscreenCanvas(width, height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    return { width, height, data: context.getImageData(0, 0, width, height).data };
  },
  // Returns a PNG of one pixel a block.
  async reduce(png) {
    const { width, height, data } = await this.pixels(png);
    const columns = this.columns;
    const rows = Math.round((height * columns) / width);
    const canvas = new OffscreenCanvas(columns, rows);
    const context = canvas.getContext("2d");
    const small = context.createImageData(columns, rows);
    const counts = new Uint32Array(columns * rows);
    const sums = new Float64Array(columns * rows * 3);
    for (let y = 0; y < height; y += 1) {
      const row = Math.min(rows - 1, Math.floor((y * rows) / height));
      for (let x = 0; x < width; x += 1) {
        const block = row * columns + Math.floor((x * columns) / width);
        counts[block] += 1;
        for (let c = 0; c < 3; c += 1) sums[block * 3 + c] += data[(y * width + x) * 4 + c];
      }
    }
    counts.forEach((count, block) => {
      for (let c = 0; c < 3; c += 1) small.data[block * 4 + c] = Math.round(sums[block * 3 + c] / count);
      small.data[block * 4 + 3] = 255;
    });
    context.putImageData(small, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/png" });
    return [...new Uint8Array(await blob.arrayBuffer())];
  },
  // Returns by how much two reduced pictures differ: their heights in percent, and the mean difference of a color
  // channel (0 to 255). Rows are compared at the same share of the height, so that other line heights move little.
  async compare(one, two) {
    const [a, b] = [await this.pixels(one), await this.pixels(two)];
    const height = (Math.abs(a.height - b.height) * 100) / a.height;
    let sum = 0;
    for (let y = 0; y < a.height; y += 1) {
      const other = Math.min(b.height - 1, Math.round((y * b.height) / a.height));
      for (let i = 0; i < a.width * 4; i += 1) {
        if (i % 4 !== 3) sum += Math.abs(a.data[y * a.width * 4 + i] - b.data[other * b.width * 4 + i]);
      }
    }
    return { height, color: sum / (a.width * a.height * 3) };
  },
})
