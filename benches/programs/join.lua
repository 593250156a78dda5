local pieces = {}
for i = 0, 199999 do pieces[i + 1] = string.format("item-%d=%d", i, i * 7) end
return #table.concat(pieces, ",")
