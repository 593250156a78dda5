local function escape(cx, cy)
  local x, y, i = 0.0, 0.0, 0
  while i < 50 and x * x + y * y <= 4.0 do
    x, y = x * x - y * y + cx, 2.0 * x * y + cy
    i = i + 1
  end
  return i
end
local sum = 0
for py = 0, 199 do
  for px = 0, 199 do sum = sum + escape(px / 100.0 - 1.5, py / 100.0 - 1.0) end
end
return sum
