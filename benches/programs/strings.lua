local keys = {}
for i = 0, 199999 do keys["key-" .. i] = i end
local sum = 0
for i = 0, 199999 do sum = sum + keys["key-" .. i] end
return sum
