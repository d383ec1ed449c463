/**
 * The smallest table of functions or jobs: a bare Map, filled in slices as the job server fills its own. Orders come as
 * lines on standard input: a number of records, whose response is the longest stalls meanwhile, as the numbers of
 * `Stalls`. It ends with its input.
 */
import { createInterface } from 'node:readline';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { StallWatch } from './stall-watch.ts';

/** Records of a slice, as in the job server. */
const SLICE = 512;

const watch = new StallWatch();
for await (const order of createInterface(process.stdin)) {
  watch.take();
  const table = new Map<string, object>();
  for (let index = 0; index < Number(order); index += 1) {
    table.set(`f${index}`, { name: `f${index}`, workers: new Set([index]), jobs: [] });
    if (index % SLICE === 0) await nextTurn();
  }
  await nextTurn(); // for the timer, and the report of the last garbage collection
  await nextTurn();
  const { processor, clock, garbage } = watch.take();
  console.log(`${processor} ${clock} ${garbage}`);
}
watch.close();
