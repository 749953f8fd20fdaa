// The state backend component, transpiled by jco.
//
//   npx jco transpile meltano_state_backend_clickhouse.wasm --name state-backend --instantiation sync -o transpiled

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { WASIShim } from "@bytecodealliance/preview2-shim/instantiation";

// Loads what jco wrote into `directory` and returns the component's interfaces by name. `settings` are those of Meltano.
export async function openStateBackend(directory, settings) {
  const { instantiate } = await import(pathToFileURL(resolve(directory, "state-backend.js")));
  const config = { get: (name) => settings[name], getAll: () => Object.entries(settings) };
  const imports = { ...new WASIShim().getImportObject(), "wasi:config/store": config };
  return instantiate((file) => new WebAssembly.Module(readFileSync(join(directory, file))), imports);
}
