(() => {
  const keys = new Map();
  for (let i = 0; i < 200000; i++) keys.set("key-" + i, i);
  let sum = 0;
  for (let i = 0; i < 200000; i++) sum += keys.get("key-" + i);
  return sum;
})()
