(() => {
  let i = 0, sum = 0;
  while (i < 5000000) {
    sum += i;
    i += 1;
  }
  return sum;
})()
