// A step of a pipeline: read the bookmark, work, move the bookmark on.
//
//   node step.mjs transpiled clickhouse://meltano:secret@localhost:8123/default prod:a

import { openStateBackend } from "./state-backend.mjs";

const [directory, uri, stateId] = process.argv.slice(2);
const { store } = await openStateBackend(directory, { "state_backend.uri": uri });

// What unfinished runs have reached is laid over what the last finished one has.
const reached = JSON.parse(store.getMerged(stateId) ?? "{}");
const last = reached.singer_state?.page ?? 0;
if (!Number.isInteger(last)) throw new Error(`the page of ${stateId} is no number: ${JSON.stringify(last)}`);
const page = last + 1;
// Here a real step would load the page.
store.update({ stateId, partialState: JSON.stringify({ singer_state: { page } }) });
console.log(`${stateId} has reached page ${page}`);
