// Makes the calls of contract.json in Node and prints what came of each.
//
//   node node.mjs TRANSPILED URI < contract.json

import { readFileSync } from "node:fs";
import { openStateBackend } from "../../examples/node/state-backend.mjs";

const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
const kebab = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const renamed = (record, rename, convert) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [rename(name), convert(value)]));

function toWit(value) {
  if (Array.isArray(value)) return value.map(toWit);
  if (value === null) return undefined;
  return typeof value === "object" ? renamed(value, camel, toWit) : value;
}

function toJson(value) {
  if (value === undefined) return null;
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value) || value instanceof Uint8Array) return Array.from(value, toJson);
  if (value === null || typeof value !== "object") return value;
  // A result within a record.
  return "tag" in value ? { [value.tag]: toJson(value.val) } : renamed(value, kebab, toJson);
}

// jco takes integers of 64 bits as BigInt only.
const versionToBigInt = (call, values) => (call === "history.restore" ? [values[0], BigInt(values[1])] : values);

const [directory, uri] = process.argv.slice(2);
const backend = await openStateBackend(directory, { "state_backend.uri": uri });

function carryOut({ call, arguments: values }) {
  const [interfaceName, name] = call.split(".");
  try {
    return { returns: toJson(backend[interfaceName][camel(name)](...versionToBigInt(call, values.map(toWit)))) };
  } catch (error) {
    if (error.payload === undefined) throw error;
    return { fails: error.payload.kind };
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(carryOut)));
