// A program run by a client that openapi-typescript has typed. It compiles only if the types say what comes.
import createClient from "openapi-fetch";
import type { components, paths } from "./service";

const client = createClient<paths>({ baseUrl: process.argv[2] });
const { data } = await client.POST("/v1/run", {
  body: { program: "(println :seen) (sum data/xs)", data: { xs: [1, 2, 3] }, history: [1] },
  parseAs: "json",
});
const answer = data as components["schemas"]["Answer"];
const fuel: number = answer.usage.fuel;
if (answer.verdict !== "ok" || answer.value !== 6 || answer.prints[0] !== ":seen" || !(fuel > 0)) throw new Error(JSON.stringify(answer));
const failed = await client.POST("/v1/run", { body: { program: "(+ 1 nil)" }, parseAs: "json" });
const wrong = failed.data as components["schemas"]["Answer"];
const reason: string | undefined = wrong.error?.reason;
if (reason !== "type_error" || wrong.error?.line !== 1) throw new Error(JSON.stringify(wrong));
const taken = await client.POST("/v1/runs", { body: { program: "(inc (tool/ask {:n 1}))", tools: { ask: { client: true } } } });
if (!taken.data?.run_id) throw new Error(JSON.stringify(taken.error));
const checked = await client.POST("/v1/check", { body: { program: "(:totl data/row)", data: { row: { total: 1 } } } });
if (checked.data?.warnings[0].repair !== "write :total") throw new Error(JSON.stringify(checked));
console.log("typescript: 4 requests of 4");
