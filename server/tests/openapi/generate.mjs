// Writes what the reference client of OpenAPI makes of values in each style: api.json, the description, and requests.jsonl, a line
// for each call with its arguments and the request that swagger-client builds for it. Nothing is sent.
//
//     npm install --prefix /tmp/reference swagger-client@3.37.3
//     NODE_PATH=/tmp/reference/node_modules node server/tests/openapi/generate.mjs server/tests/openapi

import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";

const require = createRequire(import.meta.url);
const loaded = require(require.resolve("swagger-client", { paths: [process.env.NODE_PATH ?? "."] }));
const SwaggerClient = loaded.default ?? loaded;
const folder = process.argv[2];

const scalars = ["blue", "a b", "x/y&z=1?", "größe ☃", 5, -1.5, true, "a,b;c", "50%", "1+1"];
const lists = [["blue", "black", "brown"], ["a b", "c,d"], [1, 2.5], [true], ["x&y", "p|q"], ["größe"]];
const maps = [{ B: 150, G: 200, R: 100 }, { a: "x y", b: "1&2" }, { "k k": "v" }];
const all = [...scalars, ...lists, ...maps];
const places = [
  ["path", "simple", all], ["path", "label", all], ["path", "matrix", all],
  ["query", "form", all], ["query", "spaceDelimited", [...lists, ...maps]], ["query", "pipeDelimited", [...lists, ...maps]],
  ["query", "deepObject", maps],
  ["header", "simple", all.filter((value) => !/[^ -~]/.test(JSON.stringify(value)))],
];

const paths = {};
const cases = [];
const add = (id, method, path, operation, calls) => {
  (paths[path] ??= {})[method] = { operationId: id, responses: { 200: { description: "it is done" } }, ...operation };
  for (const call of calls) cases.push({ id, ...call });
};
for (const [where, style, values] of places) {
  for (const explode of [undefined, false, true]) {
    if (style === "deepObject" && explode === false) continue;
    for (const allowReserved of where === "query" ? [undefined, true] : [undefined]) {
      const id = [where, style, explode ?? "usual", ...(allowReserved ? ["reserved"] : [])].join("_");
      const parameter = { name: "color", in: where, style, explode, allowReserved, required: where === "path", schema: {} };
      add(id, "get", where === "path" ? `/${id}/{color}/end` : `/${id}`, { parameters: [parameter] }, values.map((value) => ({ parameters: { color: value } })));
    }
  }
}
const several = ["p", "q", "r"].map((name) => ({ name, in: "query", explode: name !== "r", schema: {} }));
add("several", "get", "/several", { parameters: several }, [{ parameters: { p: "a", q: [1, 2], r: [3, 4] } }, { parameters: { q: ["x"] } }]);
const json = { name: "filter", in: "query", content: { "application/json": { schema: {} } } };
add("json", "get", "/json", { parameters: [json] }, [{ parameters: { filter: { a: [1, "x y"] } } }, { parameters: { filter: ["a", "b"] } }]);
const bodies = [{ name: "a b", n: 5, on: true }, { tags: ["x", "y z"] }, { note: "1&2=3 ☃" }];
const body = (media, more = {}) => ({ requestBody: { content: { [media]: { schema: { type: "object" }, ...more } } } });
const sent = (values) => values.map((requestBody) => ({ parameters: {}, requestBody }));
add("body_json", "post", "/body_json", body("application/json"), sent([...bodies, { deep: { a: [null, 1] } }]));
add("body_form", "post", "/body_form", body("application/x-www-form-urlencoded"), sent([bodies[0], bodies[2], { deep: { a: 1 } }]));
const encoding = { tags: { style: "form", explode: true }, plain: { style: "form", explode: false }, deep: { style: "deepObject", explode: true }, pipes: { style: "pipeDelimited", explode: false } };
add("body_encoded", "post", "/body_encoded", body("application/x-www-form-urlencoded", { encoding }), sent([{ tags: ["x", "y z"] }, { plain: ["x", "y"] }, { deep: { a: "1 2", b: 3 } }, { pipes: ["x", "y"] }]));

const spec = { openapi: "3.0.3", info: { title: "styles", version: "1" }, servers: [{ url: "http://api.test/v1" }], paths };
const lines = cases.map(({ id, parameters, requestBody }) => {
  const request = SwaggerClient.buildRequest({ spec, operationId: id, parameters, requestBody });
  const header = request.headers?.color;
  return JSON.stringify({ id, arguments: requestBody === undefined ? parameters : { ...parameters, body: requestBody },
    url: request.url.replace("http://api.test/v1", ""), header, body: typeof request.body === "string" || request.body === undefined ? request.body : JSON.stringify(request.body) });
});
writeFileSync(`${folder}/api.json`, `${JSON.stringify(spec)}\n`);
writeFileSync(`${folder}/requests.jsonl`, `${lines.join("\n")}\n`);
console.log(`${Object.keys(paths).length} operations, ${lines.length} requests`);
