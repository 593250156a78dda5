local rows = {}
for i, order in ipairs(json_decode(text).orders) do
  local qty = 0
  for _, line in ipairs(order.items) do qty = qty + line.qty end
  rows[i] = { id = order.id, country = order.country, qty = qty }
end
return #json_encode({ rows = rows })
