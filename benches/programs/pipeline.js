(() => {
  const lineTotal = ({ qty, price }) => qty * price;
  const orderTotal = (order) => order.items.map(lineTotal).reduce((a, b) => a + b, 0);
  const wanted = new Set(["shipped", "paid"]);
  const groups = new Map();
  orders
    .filter((order) => wanted.has(order.status))
    .map((order) => ({ ...order, total: orderTotal(order) }))
    .filter((order) => order.total > 20)
    .forEach((order) => {
      const group = groups.get(order.country);
      if (group) group.push(order);
      else groups.set(order.country, [order]);
    });
  const rows = [...groups].map(([country, orders]) => ({
    country,
    orders: orders.length,
    revenue: orders.reduce((sum, order) => sum + order.total, 0),
    largest: Math.max(...orders.map((order) => order.total)),
  }));
  return JSON.stringify(rows.sort((a, b) => b.revenue - a.revenue));
})()
