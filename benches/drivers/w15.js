// The programs over data sets for Node, text to text. Each line of standard input asks for runs of one program,
// {"program", "file", "runs"}; each line of the answer has their median in microseconds and what the program answers.
"use strict";
const fs = require("node:fs");
const readline = require("node:readline");

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const cents = (x) => Math.round(100 * x) / 100;
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

function groupBy(rows, key) {
  const groups = new Map();
  for (const row of rows) {
    const k = key(row);
    const group = groups.get(k);
    if (group) group.push(row);
    else groups.set(k, [row]);
  }
  return groups;
}

function frequencies(texts) {
  const counts = new Map();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

// The least by a comparison, the first of equals.
const least = (rows, order) => rows.reduce((a, b) => (order(b, a) < 0 ? b : a));

// JavaScript counts null as 0: here the mistake is one.
function carsErrors(cars) {
  return cars.reduce((total, car) => {
    if (car.Horsepower === null) throw new TypeError("no number");
    return total + car.Horsepower;
  }, 0);
}

function sortSet(graph) {
  return [...new Set(graph.links.map((link) => link.source))].sort((a, b) => a - b);
}

function carsFields(cars) {
  const gaps = {};
  for (const key of Object.keys(cars[0]).sort()) {
    const missing = cars.filter((car) => car[key] == null).length;
    if (missing > 0) gaps[key] = missing;
  }
  return gaps;
}

function mpgByOrigin(cars) {
  const rated = cars.filter((car) => car.Miles_per_Gallon !== null);
  return [...groupBy(rated, (car) => `${car.Origin} ${car.Cylinders}`).values()]
    .map((group) => ({
      origin: group[0].Origin,
      cylinders: group[0].Cylinders,
      n: group.length,
      mpg: cents(sum(group.map((car) => car.Miles_per_Gallon)) / group.length),
    }))
    .filter((row) => row.n >= 5)
    .sort((a, b) => b.mpg - a.mpg);
}

function growth(rows) {
  return [...groupBy(rows, (row) => row.country)]
    .map(([country, years]) => {
      years.sort((a, b) => a.year - b.year);
      return { country, gain: cents(years.at(-1).life_expect - years[0].life_expect) };
    })
    .sort((a, b) => b.gain - a.gain || compare(a.country, b.country))
    .slice(0, 10)
    .map(({ country, gain }, i) => ({ rank: i + 1, country, gain }));
}

function degree({ nodes, links }) {
  const names = new Map(nodes.map((node) => [node.index, node.name]));
  const neighbours = new Map();
  const add = (node, value, other) => {
    const edges = neighbours.get(node);
    if (edges) edges.push({ value, other });
    else neighbours.set(node, [{ value, other }]);
  };
  for (const { source, target, value } of links) {
    add(source, value, target);
    add(target, value, source);
  }
  return [...neighbours]
    .map(([node, edges]) => ({
      name: names.get(node),
      degree: edges.length,
      closest: names.get(least(edges, (a, b) => b.value - a.value || a.other - b.other).other),
    }))
    .sort((a, b) => b.degree - a.degree || compare(a.name, b.name))
    .slice(0, 10);
}

function directors(films) {
  const rated = films.filter((film) => film.Director && typeof film["IMDB Rating"] === "number");
  const title = (film) => String(film.Title ?? "");
  return [...groupBy(rated, (film) => film.Director)]
    .filter(([, group]) => group.length >= 5)
    .map(([director, group]) => ({
      director,
      films: group.length,
      mean: cents(sum(group.map((film) => film["IMDB Rating"])) / group.length),
      best: title(least(group, (a, b) => b["IMDB Rating"] - a["IMDB Rating"] || compare(title(a), title(b)))),
    }))
    .sort((a, b) => b.mean - a.mean || compare(a.director, b.director))
    .slice(0, 12);
}

// Equal values, whatever the order of keys.
function equal(a, b) {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => equal(a[key], b[key]));
}

function jsonRoundtrip(films) {
  const small = films.slice(0, 40).map((film) => ({
    Title: film.Title,
    "US Gross": film["US Gross"],
    "Release Date": film["Release Date"],
  }));
  const text = JSON.stringify(small);
  const back = JSON.parse(text);
  const gross = back.map((film) => film["US Gross"]).filter((gross) => typeof gross === "number");
  return { same: equal(small, back), chars: [...text].length, sum: sum(gross) };
}

function releaseMonths(films) {
  const date = /^([A-Z][a-z]{2}) \d{1,2} (\d{4})$/;
  const months = films.map((film) => date.exec(String(film["Release Date"] ?? ""))?.[1]).filter((month) => month);
  return [...frequencies(months)].sort((a, b) => b[1] - a[1] || compare(a[0], b[0]));
}

function describe(penguins) {
  const rows = [];
  for (const [species, birds] of groupBy(penguins, (penguin) => penguin.Species)) {
    const groups = groupBy(birds, ({ Sex }) => (Sex === "MALE" || Sex === "FEMALE" ? Sex : "?"));
    for (const [sex, group] of groups) {
      const masses = group.map((penguin) => penguin["Body Mass (g)"]).filter((mass) => mass !== null);
      if (masses.length === 0) continue;
      const flippers = group.map((penguin) => penguin["Flipper Length (mm)"]).filter((length) => length !== null);
      const mass = Math.round(sum(masses) / masses.length);
      rows.push({ species, sex, n: group.length, mass, flipper: Math.max(...flippers) });
    }
  }
  return rows.sort((a, b) => compare(a.species, b.species) || compare(a.sex, b.sex));
}

function histogram(quakes) {
  const magnitudes = quakes.features.map((feature) => feature.properties.mag).filter((mag) => mag != null);
  return [...frequencies(magnitudes.map((mag) => Math.floor(2 * mag) / 2))].sort((a, b) => a[0] - b[0]);
}

function strongest(quakes) {
  return quakes.features
    .map((feature) => feature.properties)
    .filter((event) => typeof event.mag === "number")
    .sort((a, b) => b.mag - a.mag || compare(a.place, b.place))
    .slice(0, 8)
    .map(({ mag, place, time }) => ({ mag, where: /of (.*)$/.exec(place)?.[1] ?? place, ms: time }));
}

function rolling(rows) {
  const rates = rows
    .filter((row) => row.series === "Construction")
    .sort((a, b) => a.year - b.year || a.month - b.month)
    .map((row) => row.rate);
  const means = [];
  for (let i = 2; i < Math.min(30, rates.length); i++) {
    means.push(((rates[i] + rates[i - 1] + rates[i - 2]) / 3).toFixed(2));
  }
  return means;
}

function parseLine(text) {
  const line = /^(\S+) (INFO|WARN|ERROR) \[(\w+)\] (.*)$/.exec(text);
  if (!line) return null;
  const [, at, level, service, message] = line;
  const ms = /(\d+)ms/.exec(message)?.[1];
  return { at, level, service, message, user: /user=(u\d+)/.exec(message)?.[1], ms: ms && parseInt(ms, 10) };
}

function cause({ message }) {
  if (message.includes("timeout")) return "timeout";
  if (message.includes("TypeError")) return "bug";
  return / 500 /.test(message) ? "http-500" : "network";
}

function logs(texts) {
  const lines = texts.map(parseLine).filter((line) => line);
  const requests = lines.filter(({ message }) => /^(GET|POST|PUT) /.test(message));
  const errors = lines.filter((line) => line.level === "ERROR");
  const routes = groupBy(requests, ({ message }) => /^(\w+) (\/v1\/\w+)/.exec(message)[0]);
  const hours = frequencies(lines.map((line) => line.at.slice(0, 13)));
  return {
    lines: texts.length,
    unreadable: texts.length - lines.length,
    levels: Object.fromEntries(frequencies(lines.map((line) => line.level))),
    "errors-by-service": [...frequencies(errors.map((line) => line.service))]
      .sort((a, b) => b[1] - a[1] || compare(a[0], b[0]))
      .map(([service]) => service),
    routes: [...routes]
      .map(([route, group]) => {
        const times = group.map((line) => line.ms).filter((ms) => ms !== undefined).sort((a, b) => a - b);
        return { route, n: group.length, median: times[times.length >> 1], worst: times.at(-1) };
      })
      .sort((a, b) => compare(a.route, b.route)),
    "users-with-errors": [...new Set(errors.map((line) => line.user).filter((user) => user))].sort(),
    "busiest-hour": least([...hours], (a, b) => b[1] - a[1] || compare(a[0], b[0]))[0],
    causes: Object.fromEntries(frequencies(errors.map(cause))),
  };
}

const lineTotal = ({ price, qty, discount }) => price * qty * (1 - (discount ?? 0));
const orderTotal = (order) => sum(order.items.map(lineTotal)) + (order.shipping ?? 0);

function orders(all) {
  const counted = all.filter(({ status }) => status === "shipped" || status === "paid");
  const countries = [...groupBy(counted, (order) => order.customer.country ?? "unknown")].map(([country, group]) => {
    const units = new Map();
    for (const { sku, qty } of group.flatMap((order) => order.items)) units.set(sku, (units.get(sku) ?? 0) + qty);
    const customers = frequencies(group.map((order) => order.customer.id));
    return {
      country,
      orders: group.length,
      revenue: cents(sum(group.map(orderTotal))),
      "with-coupon": group.filter((order) => order.coupon).length,
      "best-seller": least([...units], (a, b) => b[1] - a[1] || compare(a[0], b[0]))[0],
      "repeat-customers": [...customers.values()].filter((n) => n > 1).length,
    };
  });
  return {
    orders: all.length,
    counted: counted.length,
    "by-status": Object.fromEntries(frequencies(all.map((order) => order.status))),
    countries: countries.sort((a, b) => b.revenue - a.revenue),
    largest: counted
      .map((order) => ({ order, total: orderTotal(order) }))
      .sort((a, b) => b.total - a.total || a.order.id - b.order.id)
      .slice(0, 3)
      .map(({ order, total }) => ({ id: order.id, total: cents(total), name: order.customer.name })),
  };
}

function products({ products: all, categories }) {
  const byId = new Map(categories.map((category) => [category.id, category]));
  const path = (id) => {
    const names = [];
    for (let category = byId.get(id); category; category = byId.get(category.parent)) names.unshift(category.name);
    return names.length ? names.join(" / ") : "unknown";
  };
  const stock = (product) => sum(Object.values(product.stock));
  const live = all.filter((product) => !product.discontinued);
  const priced = live.filter((product) => product.price);
  const skus = (rows) => rows.map((product) => product.sku).sort();
  return {
    products: all.length,
    gaps: {
      "no-price": live.length - priced.length,
      "no-category": live.filter((product) => !byId.has(product.category)).length,
      "no-ratings": live.filter((product) => product.ratings.length === 0).length,
    },
    categories: [...groupBy(priced, (product) => path(product.category))]
      .map(([path, items]) => ({
        path,
        n: items.length,
        units: sum(items.map(stock)),
        value: Math.round(sum(items.map((item) => item.price * stock(item)))),
        cheapest: least(items, (a, b) => a.price - b.price || compare(a.sku, b.sku)).sku,
      }))
      .sort((a, b) => compare(a.path, b.path)),
    "top-rated": live
      .filter((product) => product.ratings.length >= 8)
      .map(({ ratings, sku, name }) => ({ sku, name, average: sum(ratings) / ratings.length }))
      .sort((a, b) => b.average - a.average || compare(a.sku, b.sku))
      .slice(0, 5)
      .map(({ sku, name, average }) => ({ sku, name, rating: average.toFixed(1) })),
    "spec-keys": Object.fromEntries(frequencies(live.flatMap((product) => Object.keys(product.specs ?? {})))),
    "heavy-wireless": skus(live.filter(({ specs }) => specs?.wireless && (specs.weight_g ?? 0) > 7000)),
    "sold-out": skus(live.filter((product) => stock(product) === 0)),
  };
}

const WEIGHTS = { low: 1, normal: 2, high: 4, urgent: 8 };

function agentCard([agent, tickets]) {
  const rated = tickets.map((ticket) => ticket.rating).filter((rating) => rating != null);
  const open = tickets.filter((ticket) => ticket.state !== "resolved");
  const minutes = tickets.map((ticket) => sum(ticket.events.map((event) => event.minutes ?? 0)));
  return {
    agent,
    tickets: tickets.length,
    resolved: tickets.length - open.length,
    load: sum(open.map((ticket) => WEIGHTS[ticket.priority])),
    minutes: sum(minutes),
    rating: rated.length ? (sum(rated) / rated.length).toFixed(2) : null,
  };
}

function tickets(all, print) {
  const open = all.filter((ticket) => ticket.state !== "resolved");
  const escalated = all.filter((ticket) => ticket.events.some((event) => event.kind === "escalate"));
  print(`open ${open.length} of ${all.length}`);
  return {
    "open-by-priority": Object.fromEntries(frequencies(open.map((ticket) => ticket.priority))),
    agents: [...groupBy(all, (ticket) => ticket.agent ?? "nobody")]
      .map(agentCard)
      .sort((a, b) => b.load - a.load || compare(a.agent, b.agent)),
    "escalation-tags": [...frequencies(escalated.flatMap((ticket) => ticket.tags))]
      .sort((a, b) => b[1] - a[1] || compare(a[0], b[0]))
      .slice(0, 3),
    "urgent-waiting": open
      .filter((ticket) => ticket.priority === "urgent" && ticket.events.at(-1)?.by !== "customer")
      .map((ticket) => [ticket.id, ticket.agent, ticket.events.at(-1)?.kind ?? null])
      .sort((a, b) => compare(a[0], b[0])),
    untagged: all.filter((ticket) => ticket.tags.length === 0).length,
  };
}

const PROGRAMS = {
  "cars-errors": carsErrors,
  "cars-fields": carsFields,
  "cars-mpg-by-origin": mpgByOrigin,
  "gapminder-growth": growth,
  logs,
  "miserables-degree": degree,
  "miserables-sort-set": sortSet,
  "movies-directors": directors,
  "movies-json-roundtrip": jsonRoundtrip,
  "movies-release-months": releaseMonths,
  orders,
  "penguins-describe": describe,
  products,
  "quakes-histogram": histogram,
  "quakes-strongest": strongest,
  tickets,
  "unemployment-rolling": rolling,
};

function run(program, text) {
  try {
    let printed = "";
    const value = program(JSON.parse(text), (line) => (printed += `${line}\n`));
    return printed + JSON.stringify(value);
  } catch (error) {
    if (error instanceof TypeError) return '{"error":"type_error"}';
    throw error;
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { program, file, runs } = JSON.parse(line);
  const text = fs.readFileSync(file, "utf8");
  const times = [];
  let answer;
  for (let i = 0; i < runs; i++) {
    const start = performance.now();
    answer = run(PROGRAMS[program], text);
    times.push(1000 * (performance.now() - start));
  }
  times.sort((a, b) => a - b);
  console.log(JSON.stringify({ micros: times[times.length >> 1], answer }));
});
