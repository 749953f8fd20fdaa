// A step of a pipeline: read the bookmark, work, move the bookmark on.
//
//   node step.mjs transpiled clickhouse://meltano:secret@localhost:8123/default prod:a

import { openStateBackend } from "./state-backend.mjs";

const [directory, uri, stateId] = process.argv.slice(2);
const { store } = await openStateBackend(directory, { "state_backend.uri": uri });

const state = store.get(stateId);
// What an unfinished run has reached lies beyond what a finished one has.
const reached = JSON.parse(state?.partialState ?? state?.completedState ?? "{}");
const page = (reached.singer_state?.page ?? 0) + 1;
// Here a real step would load the page.
store.update({ stateId, partialState: JSON.stringify({ singer_state: { page } }) });
console.log(`${stateId} has reached page ${page}`);
