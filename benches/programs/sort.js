(() => {
  const numbers = [];
  let x = 42;
  for (let i = 0; i < 300000; i++) {
    numbers.push(x);
    x = (x * 16807) % 2147483647;
  }
  return numbers.sort((a, b) => a - b)[150000];
})()
