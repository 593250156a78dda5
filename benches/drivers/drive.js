// A workload in Node: prints the median of its times in microseconds, a tab, and the answer (benches/src/peers/process.rs). By the
// clock: Node has no processor time of its thread that is exact to the microsecond.
"use strict";
const fs = require("node:fs");
const vm = require("node:vm");

const [kind, program, ordersFile, textFile, warm, measure, fewest, most] = process.argv.slice(2);
const source = fs.readFileSync(program, "utf8").trimEnd();
const json = fs.readFileSync(ordersFile, "utf8");
globalThis.orders = JSON.parse(json);
globalThis.text = fs.readFileSync(textFile, "utf8");

const compiled = new vm.Script(`(() => (${source}))`).runInThisContext();
let copies = 0;
// V8 remembers what it has compiled. Where compiling is all that is measured, no source comes twice.
const works = {
  compile: () => void new vm.Script(`${source}\n// ${copies++}`),
  inside: () => new vm.Script(source).runInThisContext(),
  bring: () => {
    globalThis.orders = JSON.parse(json);
    return new vm.Script(source).runInThisContext();
  },
  "compiled-inside": compiled,
  "compiled-bring": () => {
    globalThis.orders = JSON.parse(json);
    return compiled();
  },
  import: () => void JSON.parse(json),
  long: compiled,
};

const work = works[kind];
const now = () => Number(process.hrtime.bigint()) / 1e3;
const begun = now();
const answer = work();
const isSlow = now() - begun > 1e6;
while (now() - begun < warm * 1e3) work();
const times = [];
let spent = 0;
while (times.length < (isSlow ? 1 : fewest) || (spent < measure * 1e3 && times.length < most)) {
  const start = now();
  work();
  const time = now() - start;
  spent += time;
  times.push(time);
}
times.sort((a, b) => a - b);
console.log(`${times[Math.floor(times.length / 2)]}\t${answer ?? ""}`);
