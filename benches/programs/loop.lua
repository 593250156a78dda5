local i, sum = 0, 0
while i < 5000000 do
  sum = sum + i
  i = i + 1
end
return sum
