(() => {
  const escape = (cx, cy) => {
    let x = 0.0, y = 0.0, i = 0;
    while (i < 50 && x * x + y * y <= 4.0) {
      const next = x * x - y * y + cx;
      y = 2.0 * x * y + cy;
      x = next;
      i += 1;
    }
    return i;
  };
  let sum = 0;
  for (let py = 0; py < 200; py++) {
    for (let px = 0; px < 200; px++) sum += escape(px / 100.0 - 1.5, py / 100.0 - 1.0);
  }
  return sum;
})()
