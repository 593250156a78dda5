JSON.stringify({
  rows: JSON.parse(text).orders.map((order) => ({
    id: order.id,
    country: order.country,
    qty: order.items.reduce((sum, line) => sum + line.qty, 0),
  })),
}).length
