local function line_total(line) return line.qty * line.price end
local function order_total(order)
  local sum = 0
  for _, line in ipairs(order.items) do sum = sum + line_total(line) end
  return sum
end
local wanted, groups, rows = { shipped = true, paid = true }, {}, {}
for _, order in ipairs(orders) do
  local total = wanted[order.status] and order_total(order) or 0
  if total > 20 then
    local row = groups[order.country]
    if not row then
      row = { country = order.country, orders = 0, revenue = 0, largest = 0 }
      groups[order.country] = row
      rows[#rows + 1] = row
    end
    row.orders, row.revenue, row.largest = row.orders + 1, row.revenue + total, math.max(row.largest, total)
  end
end
table.sort(rows, function(a, b) return a.revenue > b.revenue end)
return json_encode(rows)
