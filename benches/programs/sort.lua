local numbers, x = {}, 42
for i = 1, 300000 do
  numbers[i] = x
  x = (x * 16807) % 2147483647
end
table.sort(numbers, function(a, b) return a < b end)
return numbers[150001]
